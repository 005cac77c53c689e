package hardware

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// MIG is access to the partitions of GPUs, which are named by their UUIDs. Calls
// look at and change the hardware as it is at that moment; the caller keeps changes
// of one GPU apart. All answer failure.Absent and failure.Busy as
// GPUs.ComputeMode does, and failure.Unsupported for a GPU without MIG.
type MIG interface {
	// Partitions reports the GPU's MIG mode and its GPU instances with their
	// compute instances, also those without any.
	Partitions(ctx context.Context, uuid string) (Partitions, error)

	// SetMIGMode switches the mode; switching to what is set already is no error.
	// failure.Busy while something uses the GPU, failure.Conflict where instances
	// exist, failure.Unsupported where the GPU needs a reset for it: it is not
	// touched then.
	SetMIGMode(ctx context.Context, uuid string, enabled bool) error

	// MakeGPUInstance makes an instance of that profile at that placement, and
	// returns its ID. failure.Conflict where the placement or what the profile
	// needs is taken, or MIG mode is off: nothing was made. failure.Invalid where
	// the GPU has no such profile or placement.
	MakeGPUInstance(ctx context.Context, uuid string, profileID int, at machine.Placement) (int, error)

	// MakeComputeInstance makes the one compute instance that spans a GPU
	// instance. failure.Absent where there is no such GPU instance,
	// failure.Conflict where it has a compute instance, or others have what one needs.
	MakeComputeInstance(ctx context.Context, uuid string, gpuInstance int) (machine.ComputeInstance, error)

	// DestroyComputeInstance and DestroyGPUInstance are failure.Busy while somebody
	// holds the instance open, and failure.Absent where it does not exist. A GPU
	// instance with compute instances is failure.Conflict.
	DestroyComputeInstance(ctx context.Context, uuid string, gpuInstance, computeInstance int) error
	DestroyGPUInstance(ctx context.Context, uuid string, gpuInstance int) error
}

// Partitions is how a GPU is divided at one moment.
type Partitions struct {
	Enabled bool
	// Instances in the order of their placements.
	Instances []machine.GPUInstance
}
