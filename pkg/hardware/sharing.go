package hardware

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Sharing lets processes of several claims use one GPU at a time. Devices are named
// by the UUIDs of GPUs or MIG devices. Every call can be made again. Errors:
// failure.Absent for a device that is not there, failure.Unsupported where driver or
// GPU cannot, failure.Unreachable where nobody answers for it now.
type Sharing interface {
	// StartMPS has one MPS control daemon serve just these devices, which its clients
	// see in this order, and returns where they find it. One that serves them already
	// is left as it is; failure.Conflict names the devices that another one serves.
	// failure.Unsupported for a GPU in MIG mode, and for more than one MIG device.
	StartMPS(ctx context.Context, devices []string) (MPSDaemon, error)

	// StopMPS ends the control daemon over these devices, with its servers and
	// clients. None is no error.
	StopMPS(ctx context.Context, devices []string) error

	// MakeNamespace gives a daemon of protocol 3 a namespace of that name, a DNS
	// label, with these limits, and returns the pipe directory of its clients.
	// failure.Unsupported for protocol 2.
	MakeNamespace(ctx context.Context, devices []string, name string, limits MPSLimits) (pipe string, err error)

	// RemoveNamespace takes a namespace away. None is no error.
	RemoveNamespace(ctx context.Context, devices []string, name string) error

	// WatchMPS calls notify for what becomes of control daemons, until ctx ends, and
	// then returns nil.
	WatchMPS(ctx context.Context, notify func(MPSEvent)) error

	// TimeSlice reads how long a GPU works for one process before it turns to the
	// next.
	TimeSlice(ctx context.Context, gpu string) (machine.TimeSlice, error)

	// SetTimeSlice sets it; setting what is set already changes nothing.
	SetTimeSlice(ctx context.Context, gpu string, to machine.TimeSlice) error
}

// MPSDaemon is where clients find a control daemon.
type MPSDaemon struct {
	// Protocol is 3 where limits are the daemon's (namespaces), and 2 where they are
	// in the environment of clients.
	Protocol int
	// Pipe and Shm are directories on the host: what clients have as
	// CUDA_MPS_PIPE_DIRECTORY and as /dev/shm. Shm cannot be found while the daemon
	// does not run: no container shall start without it.
	Pipe, Shm string
}

// MPSLimits are one namespace's.
type MPSLimits struct {
	// ThreadPercentage is the most of a GPU's multiprocessors that a client uses;
	// 0 sets no limit.
	ThreadPercentage int
	// Memory is the most that clients allocate, in bytes by device; a device
	// that is not there has no limit.
	Memory map[string]uint64
}

// MPSEvent is something that became of a control daemon.
type MPSEvent struct {
	Devices []string
	Kind    MPSEventKind
	// Message is for people.
	Message string
}

// MPSEventKind is a bounded set, fit for a metric's label.
type MPSEventKind string

// Kinds of event.
const (
	MPSRestarted MPSEventKind = "restarted" // it had died; its clients have lost their work
	MPSFaulted   MPSEventKind = "faulted"   // a client's fatal fault: no new clients until all have gone
	MPSFailed    MPSEventKind = "failed"    // it cannot be started again; tried further
)
