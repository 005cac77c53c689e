// Package smi stands in for nvidia-smi on a simulated machine, as far as the driver
// and people need it: a list of GPUs, and time slices.
package smi

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Name of the program.
const Name = "nvidia-smi"

// Run is the program, and returns its exit status. m is nil where the machine cannot
// be seen, as in a container; then the device nodes that are there are listed.
func Run(m *simulator.Machine, args []string, out, errors io.Writer) int {
	var err error
	status := 2
	switch {
	case len(args) == 1 && (args[0] == "-L" || args[0] == "--list-gpus"):
		status, err = 9, list(m, out)
	case len(args) > 0 && args[0] == "compute-policy" && m != nil:
		status, err = 3, computePolicy(m, args[1:], out)
	default:
		err = fmt.Errorf("only -L and, on the node, compute-policy are there")
	}
	if err != nil {
		fmt.Fprintln(errors, Name+" (simulated):", err)
		return status
	}
	return 0
}

func list(m *simulator.Machine, out io.Writer) error {
	n := 0
	if m != nil {
		state, err := m.State()
		if err != nil {
			return err
		}
		for i := range state.GPUs {
			if g := state.GPU(i); state.Driver == simulator.DriverLoaded && !g.Has(simulator.FaultLost) {
				fmt.Fprintf(out, "GPU %d: %s (UUID: %s)\n", i, g.Model.ProductName, g.Spec.UUID)
				n++
			}
		}
	} else {
		nodes, err := filepath.Glob("/dev/nvidia[0-9]*")
		if err != nil {
			return err
		}
		for _, node := range nodes {
			fmt.Fprintf(out, "GPU %d: %s (simulated)\n", n, node)
			n++
		}
	}
	if n == 0 {
		return fmt.Errorf("no GPU: the driver is not loaded, or the container was given none")
	}
	return nil
}

// policy is what compute-policy is told.
type policy struct {
	gpu  string
	list bool
	set  string
}

func parse(args []string) (p policy, err error) {
	for len(args) > 0 {
		name, value, ok := strings.Cut(args[0], "=")
		args = args[1:]
		if takes := name == "-i" || name == "--id" || name == "--set-timeslice"; takes && !ok && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		switch name {
		case "-i", "--id":
			p.gpu = value
		case "-l", "--list":
			p.list = true
		case "--set-timeslice":
			p.set = value
		default:
			return p, fmt.Errorf("compute-policy: unknown option %s", name)
		}
	}
	if p.list == (p.set != "") {
		return p, fmt.Errorf("compute-policy: give one of --list and --set-timeslice")
	}
	return p, nil
}

// computePolicy shows or sets the time slices of a GPU, or of all.
func computePolicy(m *simulator.Machine, args []string, out io.Writer) error {
	if err := m.CountRun(Name + " compute-policy"); err != nil {
		return err
	}
	p, err := parse(args)
	if err != nil {
		return err
	}
	state, err := m.State()
	if err != nil {
		return err
	}
	var gpus []simulator.GPU
	if p.gpu != "" {
		g, err := state.Find(p.gpu)
		if err != nil {
			return err
		}
		gpus = append(gpus, g)
	} else {
		for i := range state.GPUs {
			gpus = append(gpus, state.GPU(i))
		}
	}
	if p.list {
		return show(m, gpus, out)
	}
	n, err := strconv.Atoi(p.set)
	if err != nil || n < 0 || n >= len(machine.TimeSlices) {
		return fmt.Errorf("time slice %q: give 0 (default), 1 (short), 2 (medium) or 3 (long)", p.set)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("insufficient permissions: setting a compute policy needs root")
	}
	for _, g := range gpus {
		if err := m.SetTimeSlice(g.Spec.UUID, machine.TimeSlices[n]); err != nil {
			return err
		}
		fmt.Fprintf(out, "Successfully set timeslice policy to: %s for GPU %d.\n", machine.TimeSlices[n], g.Index)
	}
	return nil
}

// show prints the table of nvidia-smi compute-policy --list.
func show(m *simulator.Machine, gpus []simulator.GPU, out io.Writer) error {
	const rule = "+-------------------------------------+\n"
	table := rule + "| GPU compute policies:               |\n| GPU     Name            Value       |\n|=====================================|\n"
	for _, g := range gpus {
		if err := m.Call(g.Spec.UUID, simulator.CallTimeSlice); err != nil {
			return err
		}
		table += fmt.Sprintf("| %3d     %-15s %-11s |\n", g.Index, "Timeslice", g.TimeSliceOf())
	}
	_, err := io.WriteString(out, table+rule)
	return err
}
