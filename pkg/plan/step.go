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
	// SetTimeSlice is undone by setting what was before, where this was the GPU's
	// last claim that wanted an interval.
	SetTimeSlice StepKind = "time-slice"
	// StartMPS is undone by stopping the control daemon, where this was its last
	// claim.
	StartMPS StepKind = "mps"
	// MakeNamespace is undone by removing it.
	MakeNamespace StepKind = "mps-namespace"
	// ReserveNIC changes nothing itself: the hook of the container takes the NIC into
	// the Pod. It is undone by bringing the NIC home.
	ReserveNIC StepKind = "nic"
)

// Step is one change to hardware. It is recorded before it is made.
type Step struct {
	Kind StepKind `json:"kind"`
	GPU  string   `json:"gpu,omitempty"` // UUID

	// ComputeMode to set. Before is what it replaces: the planner does not know
	// it; it is read from the hardware before the step is recorded.
	ComputeMode machine.ComputeMode `json:"computeMode,omitempty"`
	Before      machine.ComputeMode `json:"before,omitempty"`
	// MIGBefore says, likewise, that MIG mode was on before any claim had a
	// partition of the GPU.
	MIGBefore bool `json:"migBefore,omitempty"`
	// Partition that an instance is made for.
	Partition *Partition `json:"partition,omitempty"`
	// ForMPS says that the compute mode is set for a control daemon: claims that
	// share the GPU have it together.
	ForMPS bool `json:"forMPS,omitempty"`
	// Request that a time slice or a namespace is for.
	Request string `json:"request,omitempty"`
	// Interval to set, and what it replaces.
	Interval       machine.TimeSlice `json:"interval,omitempty"`
	IntervalBefore machine.TimeSlice `json:"intervalBefore,omitempty"`
	// Set is what one control daemon is over: devices of the plan, by name.
	Set []Member `json:"set,omitempty"`
	// Namespace in the control daemon, and its limits.
	Namespace string  `json:"namespace,omitempty"`
	Limits    *Limits `json:"limits,omitempty"`

	// Device is the name of the NIC, or VF, that is reserved: Reserved, with how the
	// machine had it. Home is what it is on the host, read before the step is recorded.
	Device   string            `json:"device,omitempty"`
	Reserved *machine.Reserved `json:"reserved,omitempty"`
	Home     *machine.NICHome  `json:"home,omitempty"`
}

// Member is one device of a control daemon.
type Member struct {
	GPU string `json:"gpu"` // UUID
	// Partition of the GPU; nil for all of it.
	Partition *Partition `json:"partition,omitempty"`
	// Static is its MIG device's UUID, where somebody else has made it.
	Static string `json:"static,omitempty"`
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

// steps that make a device ready by itself.
func steps(r Result, d machine.Device) []Step {
	var steps []Step
	gpu := d.GPU.UUID
	if r.Config.ComputeMode != "" {
		steps = append(steps, Step{Kind: SetComputeMode, GPU: gpu, ComputeMode: r.Config.ComputeMode})
	}
	if r.Config.Interval != "" {
		steps = append(steps, Step{Kind: SetTimeSlice, GPU: gpu, Interval: r.Config.Interval, Request: r.Request})
	}
	if d.Partition == nil || d.Partition.Static() {
		return steps
	}
	if d.GPU.MIG.OnDemand {
		steps = append(steps, Step{Kind: EnableMIG, GPU: gpu})
	}
	partition := &Partition{
		Device: d.Name, Profile: d.Partition.Profile.Name, ProfileID: d.Partition.Profile.ID, Placement: d.Partition.Placement,
	}
	return append(steps,
		Step{Kind: MakeGPUInstance, GPU: gpu, Partition: partition},
		Step{Kind: MakeComputeInstance, GPU: gpu, Partition: partition})
}
