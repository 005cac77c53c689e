// Package cuda stands in for a program that uses CUDA on a simulated machine: what
// its driver does with MPS, limits, compute mode and memory.
package cuda

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
)

// CgroupVariable is an environment variable that names the process's cgroup in place
// of proc. It is for tests.
const CgroupVariable = "DOVETAIL_SIM_CGROUP"

// Process is what cuInit has made of this process.
type Process struct {
	// Session is nil without MPS; the process then has a context of its own, if it can
	// see the machine: a container cannot.
	Session *mps.Session
	context *simulator.Context
	Devices []mps.AttachedDevice
}

// Init finds devices as CUDA does: by an MPS control daemon, where there is one in
// CUDA_MPS_PIPE_DIRECTORY, else alone. machine is nil where it cannot be seen.
func Init(machine *simulator.Machine) (*Process, error) {
	pipe := cmp.Or(os.Getenv("CUDA_MPS_PIPE_DIRECTORY"), "/tmp/nvidia-mps")
	session, err := mps.Connect(pipe, strings.Join(os.Args, " "), cgroup())
	switch {
	case err == nil:
		return &Process{Session: session, Devices: session.Devices}, nil
	case !errors.Is(err, mps.ErrNoDaemon):
		return nil, err
	case machine == nil:
		return withoutMachine()
	}
	return alone(machine)
}

func alone(machine *simulator.Machine) (*Process, error) {
	state, err := machine.State()
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range state.GPUs {
		names = append(names, state.Spec.GPUs[i].UUID)
	}
	if list, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		names = strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
	}
	if len(names) == 0 {
		return nil, &mps.Error{Code: "CUDA_ERROR_NO_DEVICE", Message: "CUDA_VISIBLE_DEVICES is empty"}
	}
	c, err := machine.OpenContext(names)
	if err != nil {
		return nil, &mps.Error{Code: mps.ErrUnavailable, Message: err.Error()}
	}
	p := &Process{context: c}
	for _, d := range c.Devices() {
		p.Devices = append(p.Devices, mps.AttachedDevice{UUID: d.UUID, Memory: d.Memory, Multiprocessors: d.Multiprocessors})
	}
	return p, nil
}

// withoutMachine opens the device nodes of a container, which are all that can be
// seen of its GPUs. Nobody counts its memory.
func withoutMachine() (*Process, error) {
	nodes, _ := filepath.Glob("/dev/nvidia[0-9]*") // the pattern is right
	p := &Process{}
	for _, node := range nodes {
		if _, err := unix.Open(node, unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
			p.Devices = append(p.Devices, mps.AttachedDevice{UUID: node})
		}
	}
	if len(p.Devices) == 0 {
		return nil, &mps.Error{Code: "CUDA_ERROR_NO_DEVICE", Message: "no simulated machine, and no device node"}
	}
	return p, nil
}

// cgroup is the process's in cgroup v2, as it sees it.
func cgroup() string {
	if path := os.Getenv(CgroupVariable); path != "" {
		return path
	}
	if inode, ok := namespaceRoot("/sys/fs/cgroup"); ok {
		return simulator.NamespaceCgroup(inode)
	}
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path
		}
	}
	return ""
}

// namespaceRoot is the inode of the cgroup that is the root of this process's cgroup
// namespace, as containers have one with cgroup v2 (cgroup_namespaces(7)). The root of all
// has inode 1.
func namespaceRoot(mounted string) (inode uint64, ok bool) {
	var kind unix.Statfs_t
	var root unix.Stat_t
	if unix.Statfs(mounted, &kind) != nil || kind.Type != unix.CGROUP2_SUPER_MAGIC || unix.Stat(mounted, &root) != nil {
		return 0, false
	}
	return root.Ino, root.Ino != 1
}

// Allocate takes memory of a device; nil is success.
func (p *Process) Allocate(device int, bytes uint64) *mps.Error {
	switch {
	case p.Session != nil:
		return p.Session.Allocate(device, bytes)
	case device < 0 || device >= len(p.Devices):
		return &mps.Error{Code: mps.ErrInvalidDevice, Message: "there is no such device"}
	case p.context == nil:
		return nil
	}
	err := p.context.Allocate(p.context.Devices()[device], "", cgroup(), bytes)
	switch {
	case errors.Is(err, failure.Conflict):
		return &mps.Error{Code: mps.ErrOutOfMemory, Message: err.Error()}
	case err != nil:
		return &mps.Error{Code: mps.ErrUnavailable, Message: err.Error()}
	}
	return nil
}

// Fault is a fatal fault, such as an access beyond memory.
func (p *Process) Fault(device int) *mps.Error {
	if p.Session != nil {
		return p.Session.Fault(device)
	}
	return &mps.Error{Code: mps.ErrLaunchFailed, Message: "own fault"}
}

// Ended has the error that ends the process's work from outside; without MPS nothing.
func (p *Process) Ended() <-chan *mps.Error {
	if p.Session == nil {
		return nil
	}
	return p.Session.Ended
}

// Close ends it.
func (p *Process) Close() {
	if p.Session != nil {
		p.Session.Close()
	}
	if p.context != nil {
		p.context.Close()
	}
}
