// Package holders finds the processes that have a GPU, or a partition of one,
// open, and so keep it from being taken apart.
package holders

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware/capability"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience"
)

// majorGPU is the major number of /dev/nvidiaN (devices.txt of the kernel).
const majorGPU = 195

// Holder is a process that has a device open.
type Holder struct {
	// PID in the PID namespace whose processes are looked at: the host's.
	PID int
	// Name is the process's own; empty where it has just ended.
	Name string
	// Command is its command line up to the first option; empty where it cannot be
	// read.
	Command string
}

// String is "python3 (process 4711: python3 /app/train.py)".
func (h Holder) String() string {
	text := "process " + strconv.Itoa(h.PID)
	if h.Command != "" {
		text += ": " + h.Command
	}
	if h.Name == "" {
		return text
	}
	return h.Name + " (" + text + ")"
}

// Finder looks for holders.
type Finder struct {
	processes, proc string
	calls           patience.Calls // by process
}

// NewFinder takes where the host's processes are seen, and where the driver's
// files are: both are "/proc", except in a container or on a simulated machine.
func NewFinder(processes, proc string) *Finder {
	return &Finder{processes: processes, proc: proc, calls: patience.Calls{Limit: commandPatience}}
}

// OfGPU lists those that have the GPU itself open, in the order of their PIDs.
// This process is never among them. failure.Unsupported where none was found and
// not all processes could be looked at.
func (f *Finder) OfGPU(gpu *machine.GPU) ([]Holder, error) {
	return f.find(map[uint64]bool{unix.Mkdev(majorGPU, uint32(gpu.Minor)): true})
}

// OfInstance is OfGPU for a GPU instance and all its compute instances;
// failure.Absent where the driver knows no MIG.
func (f *Finder) OfInstance(gpu *machine.GPU, gpuInstance int) ([]Holder, error) {
	table, err := capability.Read(f.proc)
	if err != nil {
		return nil, err
	}
	devices := map[uint64]bool{}
	for _, node := range table.GPUInstance(gpu.Minor, gpuInstance) {
		devices[unix.Mkdev(node.Major, node.Minor)] = true
	}
	return f.find(devices)
}

// Names is OfInstance, or without an instance OfGPU, in words.
func (f *Finder) Names(gpu *machine.GPU, gpuInstance *int) ([]string, error) {
	find := f.OfGPU
	if gpuInstance != nil {
		find = func(gpu *machine.GPU) ([]Holder, error) { return f.OfInstance(gpu, *gpuInstance) }
	}
	found, err := find(gpu)
	var names []string
	for _, holder := range found {
		names = append(names, holder.String())
	}
	return names, err
}
