// Package plan decides, from an allocation and the machine, what is to be done
// and in which order. It is pure: it reads and changes nothing.
package plan

import (
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Allocation is what the scheduler gave to a claim on this node.
type Allocation struct {
	Results []Result
}

// Result is one allocated device.
type Result struct {
	// Request is the name of the request, "request/subrequest" where one of
	// several alternatives was taken.
	Request string
	// Device is the device's name in the node's pool.
	Device string
	// AdminAccess sees the device and must not change it.
	AdminAccess bool
	// ComputeMode to set; empty leaves it as it is.
	ComputeMode machine.ComputeMode
}

// Plan is what preparing an allocation takes.
type Plan struct {
	// Locks names what must be held while the plan is carried out.
	Locks []string
	// Holds names the devices that nobody else may hold.
	Holds []string
	Steps []Step
	// Devices to give to containers, in the order of the allocation.
	Devices []Device
}

// Device is one prepared device.
type Device struct {
	Request     string `json:"request"`
	Name        string `json:"name"`
	GPU         string `json:"gpu"` // UUID
	AdminAccess bool   `json:"adminAccess,omitempty"`
}

// StepKind says what a step does, and so how it is undone.
type StepKind string

// SetComputeMode is undone by setting what was set before, unless somebody has
// changed it meanwhile. Both are idempotent.
const SetComputeMode StepKind = "compute-mode"

// Step is one change to hardware. It is recorded before it is made.
type Step struct {
	Kind        StepKind            `json:"kind"`
	GPU         string              `json:"gpu"` // UUID
	ComputeMode machine.ComputeMode `json:"computeMode,omitempty"`
	// Before is what ComputeMode replaces. The planner does not know it; it is
	// read from the hardware before the step is recorded.
	Before machine.ComputeMode `json:"before,omitempty"`
}

// Prepare plans an allocation. Errors name the device: failure.Absent where the
// machine does not have it, failure.Busy where it cannot work as it is. Any other
// sickness is a matter of taints and tolerations, which the scheduler has weighed.
func Prepare(a Allocation, m *machine.Machine) (Plan, error) {
	var p Plan
	for _, r := range a.Results {
		device, ok := m.Device(r.Device)
		if !ok {
			return Plan{}, failure.New(failure.Absent,
				"request %s: device %s is not on this node; it was there when it was published, or the allocation was made by hand: delete the claim to have another one allocated",
				r.Request, r.Device)
		}
		p.Devices = append(p.Devices, Device{
			Request: r.Request, Name: device.Name, GPU: device.GPU.UUID, AdminAccess: r.AdminAccess,
		})
		if r.AdminAccess {
			continue
		}
		if device.Kind == machine.KindMonitor {
			return Plan{}, failure.New(failure.Invalid,
				"request %s: adminAccess: false, but device %s only looks at a GPU that others may have: set adminAccess to true, or claim gpu.dovetail.dev",
				r.Request, r.Device)
		}
		if h := device.GPU.Health; !h.Usable() {
			return Plan{}, failure.New(failure.Busy, "request %s: device %s cannot be used: %s", r.Request, r.Device, h.Message)
		}
		if slices.Contains(p.Holds, device.Name) {
			return Plan{}, failure.New(failure.Conflict, "request %s: device %s is allocated twice in one claim", r.Request, r.Device)
		}
		p.Holds = append(p.Holds, device.Name)
		p.Locks = append(p.Locks, device.GPU.Name())
		if r.ComputeMode != "" {
			p.Steps = append(p.Steps, Step{Kind: SetComputeMode, GPU: device.GPU.UUID, ComputeMode: r.ComputeMode})
		}
	}
	return p, nil
}
