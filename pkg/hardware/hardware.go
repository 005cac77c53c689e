// Package hardware holds the ports: what the driver asks of hardware, and what
// each call means. Implementations are in the packages below it and in
// pkg/simulator; all pass the one suite in hardwaretest. Errors are of the
// classes in pkg/failure and name the device.
package hardware

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// GPUs is access to the node's NVIDIA GPUs. Calls may come from any goroutine;
// a slow GPU delays only calls that concern it.
type GPUs interface {
	// Describe reports driver and GPUs as they are now, in the order of their
	// PCI addresses. Location is left zero but for NUMANode -1: that is sysfs's
	// to say. A GPU that cannot be read is a fault, not an error. Without a
	// loaded driver the error is failure.Absent; where it cannot even be asked,
	// since its library is missing or of another version, failure.Unreachable. A
	// later call can succeed.
	Describe(ctx context.Context) (Description, error)

	// ComputeMode reads a GPU's compute mode. A GPU that is not there, that fell
	// off the bus, or whose driver is not loaded, is failure.Absent: it has no
	// state any more. One that wants a reset first, or does not answer, is
	// failure.Busy. failure.Unreachable as above.
	ComputeMode(ctx context.Context, uuid string) (machine.ComputeMode, error)

	// SetComputeMode sets it; setting what is set already is no error.
	// failure.Unsupported where the GPU cannot, failure.Absent as above.
	SetComputeMode(ctx context.Context, uuid string, mode machine.ComputeMode) error

	MIG

	// Watch calls notify for each event until ctx ends, and then returns nil.
	// Events that came before Watch began are not seen. Any other return is an
	// error, failure.Unsupported where no GPU has events.
	Watch(ctx context.Context, notify func(Event)) error

	// Close frees what the implementation holds. No call may follow.
	Close() error
}

// Description is what GPUs.Describe answers.
type Description struct {
	Driver machine.Driver
	GPUs   []machine.GPU
	Faults []machine.Fault
}

// Event is something that a GPU's driver reported. It says that a look is
// worthwhile; what is the case is for Describe to say.
type Event struct {
	// UUID of the GPU; empty where the driver does not know.
	UUID string
	// Xid is NVIDIA's number of the error; 0 for events of other kinds, such as
	// a GPU that is well again.
	Xid uint64
}

// Critical says whether the event speaks against the GPU. The Xids of
// applications' own errors do not (NVIDIA, "Xid Errors"): 13 graphics engine
// exception, 31 page fault, 43 and 45 stopped or preemptive channel, 68 video
// processor exception.
func (e Event) Critical() bool {
	switch e.Xid {
	case 0, 13, 31, 43, 45, 68:
		return false
	}
	return true
}
