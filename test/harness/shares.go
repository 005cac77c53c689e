package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
)

// MPSDir is where dovetail-mps and clients of MPS meet.
const MPSDir = "/run/dovetail/mps"

// Process is one of MPS's on a node.
type Process struct {
	PID int
	// Command is how it was called.
	Command []string
	// Devices by their UUIDs, in its order.
	Devices []string
}

// Control says whether it is a control daemon, and no command to one.
func (p Process) Control() bool {
	return path.Base(p.Command[0]) == mps.ControlName && slices.Contains(p.Command, "-f")
}

// Server says whether it is an MPS server.
func (p Process) Server() bool { return path.Base(p.Command[0]) == mps.ServerName }

// listProcesses prints, for each process of MPS on the node, a line of its process ID,
// devices and command; the nodes of a cluster see each other's processes. pgrep knows
// but 15 bytes of a name, which are both programs'.
const listProcesses = `for p in $(pgrep -x nvidia-cuda-mps); do
	grep -qs "/$(hostname)/" /proc/$p/cgroup || continue
	echo "$p $(tr '\0' '\n' < /proc/$p/environ | sed -n s/^CUDA_VISIBLE_DEVICES=//p) $(tr '\0' ' ' < /proc/$p/cmdline)"
done 2>/dev/null || true
`

func parseProcesses(lines string) ([]Process, error) {
	var all []Process
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue // it has ended just now
		}
		pid, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, fmt.Errorf("a process of MPS: %q: %w", line, err)
		}
		all = append(all, Process{PID: pid, Devices: strings.Split(fields[1], ","), Command: fields[2:]})
	}
	return all, nil
}

// daemon is what dovetail-mps has on record of a control daemon.
type daemon struct {
	Devices    []string
	Namespaces map[string]any
}

// daemons: the control daemons that run, and what dovetail-mps keeps of them, are those
// that claims have.
func (c *comparison) daemons(steps []made) {
	wanted := map[string]map[string]bool{} // namespaces, by devices
	for _, s := range steps {
		devices := strings.Join(s.Devices, ",")
		if wanted[devices] == nil && (s.Kind == plan.StartMPS || s.Kind == plan.MakeNamespace) {
			wanted[devices] = map[string]bool{}
		}
		if s.Kind == plan.MakeNamespace {
			wanted[devices][s.Namespace] = true
		}
	}
	running := map[string]int{}
	for _, p := range c.Processes {
		devices := strings.Join(p.Devices, ",")
		switch {
		case wanted[devices] == nil && (p.Control() || p.Server()):
			c.differ("process %d (%s) is left over %s", p.PID, strings.Join(p.Command, " "), devices)
		case p.Control():
			running[devices]++
		}
	}
	kept := c.kept(wanted)
	for _, devices := range slices.Sorted(maps.Keys(wanted)) {
		if running[devices] != 1 || !kept[devices] {
			c.differ("of the control daemon over %s, %d run, and dovetail-mps has it on record: %t", devices, running[devices], kept[devices])
		}
	}
}

// kept are the control daemons that dovetail-mps has on record; it has no other
// directories than theirs.
func (c *comparison) kept(wanted map[string]map[string]bool) map[string]bool {
	kept, dirs := map[string]bool{}, map[string]bool{}
	for name := range c.Files {
		dir, _, below := strings.Cut(strings.TrimPrefix(name, MPSDir+"/"), "/")
		if below && strings.HasPrefix(name, MPSDir+"/") {
			dirs[dir] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		var d daemon
		if err := json.Unmarshal(c.Files[path.Join(MPSDir, dir, "set.json")], &d); err != nil {
			c.differ("directory %s of MPS has no record that can be read: %v", dir, err)
			continue
		}
		devices := strings.Join(d.Devices, ",")
		kept[devices] = true
		if wanted[devices] == nil {
			c.differ("directory %s of MPS is left, over %s", dir, devices)
			continue
		}
		for name := range d.Namespaces {
			if !wanted[devices][name] {
				c.differ("namespace %s is of no claim", name)
			}
			delete(wanted[devices], name)
		}
		for name := range wanted[devices] {
			c.differ("namespace %s is a claim's, and does not exist", name)
		}
	}
	return kept
}

// timeSlice of a GPU is the default one, but for claims.
func (c *comparison) timeSlice(uuid string, got machine.TimeSlice, steps []made) {
	want := machine.TimeSliceDefault
	for _, s := range steps {
		if s.Kind == plan.SetTimeSlice && s.GPU == uuid {
			want = s.Interval
		}
	}
	if got != want {
		c.differ("GPU %s has time slice %s, want %s", uuid, got, want)
	}
}
