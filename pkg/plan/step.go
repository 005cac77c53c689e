package plan

import (
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// StepKind says what a step does, and so how it is undone. Doing a step twice,
// undoing it twice, and undoing what was never done are no errors.
type StepKind string

// Kinds of step.
const (
	// SetComputeMode is undone by setting what was set before, unless somebody has
	// changed it meanwhile.
	SetComputeMode StepKind = "compute-mode"
	// EnableMIG is undone by switching MIG mode off, where it was off before and
	// this was the GPU's last partition. Each partition has the step where the mode
	// can be switched: it is on today for reasons that can be gone tomorrow.
	EnableMIG StepKind = "mig-mode"
	// MakeGPUInstance and MakeComputeInstance are undone by destroying it.
	MakeGPUInstance     StepKind = "gpu-instance"
	MakeComputeInstance StepKind = "compute-instance"
)

// Step is one change to hardware. It is recorded before it is made.
type Step struct {
	Kind StepKind `json:"kind"`
	GPU  string   `json:"gpu"` // UUID

	// ComputeMode to set. Before is what it replaces: the planner does not know
	// it; it is read from the hardware before the step is recorded.
	ComputeMode machine.ComputeMode `json:"computeMode,omitempty"`
	Before      machine.ComputeMode `json:"before,omitempty"`
	// MIGBefore says, likewise, that MIG mode was on before any claim had a
	// partition of the GPU.
	MIGBefore bool `json:"migBefore,omitempty"`
	// Partition that an instance is made for.
	Partition *Partition `json:"partition,omitempty"`
}

// Partition is what a claim's instances are known by in the hardware: no two GPU
// instances lie at one placement.
type Partition struct {
	// Device is the name of the device.
	Device    string            `json:"device"`
	Profile   string            `json:"profile"`
	ProfileID int               `json:"profileID"`
	Placement machine.Placement `json:"placement"`
}

// Is says whether an instance is this partition's.
func (p *Partition) Is(i *machine.GPUInstance) bool {
	return i.ProfileID == p.ProfileID && i.Placement == p.Placement
}

// steps that make a device ready.
func steps(r Result, d machine.Device) []Step {
	gpu := d.GPU.UUID
	switch {
	case d.Kind == machine.KindGPU && r.ComputeMode != "":
		return []Step{{Kind: SetComputeMode, GPU: gpu, ComputeMode: r.ComputeMode}}
	case d.Kind != machine.KindMIG || d.Partition.Static():
		return nil
	}
	partition := &Partition{
		Device: d.Name, Profile: d.Partition.Profile.Name, ProfileID: d.Partition.Profile.ID, Placement: d.Partition.Placement,
	}
	instances := []Step{
		{Kind: MakeGPUInstance, GPU: gpu, Partition: partition},
		{Kind: MakeComputeInstance, GPU: gpu, Partition: partition},
	}
	if !d.GPU.MIG.OnDemand {
		return instances
	}
	return append([]Step{{Kind: EnableMIG, GPU: gpu}}, instances...)
}
