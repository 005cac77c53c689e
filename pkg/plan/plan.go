// Package plan decides, from an allocation and the machine, what is to be done
// and in which order. It is pure: it reads and changes nothing.
package plan

import (
	"fmt"
	"slices"
	"strconv"

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
	// ShareID of a share, and what it was given of the device.
	ShareID string
	Memory  uint64 // bytes
	Compute int    // percent
	// Config is what class and claim say, where they say anything.
	Config Config
}

// Config is what class and claim say of a result. Empty fields leave it as it is.
type Config struct {
	ComputeMode machine.ComputeMode
	// Sharing is a way to share a device that is no share: KindMPS or KindTimeSlice,
	// or KindGPU, which is none.
	Sharing machine.Kind
	// MPS limits each process of a device that is no share.
	MPS         MPSConfig
	LowPriority bool
	Interval    machine.TimeSlice
	Enforcement machine.Enforcement
	// NIC configures the NIC, of a device that has one.
	NIC NICConfig
}

// MPSConfig limits each process; zero means no limit.
type MPSConfig struct {
	ThreadPercentage int
	Memory           uint64 // bytes
}

// Plan is what preparing an allocation takes.
type Plan struct {
	// Locks names what must be held while the plan is carried out.
	Locks []string
	// Holds names what nobody else may hold: devices, and memory units of GPUs.
	Holds []string
	// Joins names what others may hold, too, as long as they have it as the same
	// device: the value.
	Joins map[string]string
	Steps []Step
	// Devices to give to containers, in the order of the allocation.
	Devices []Device
}

// Device is one prepared device.
type Device struct {
	Request     string       `json:"request"`
	Name        string       `json:"name"`
	Kind        machine.Kind `json:"kind,omitempty"`
	GPU         string       `json:"gpu"` // UUID
	AdminAccess bool         `json:"adminAccess,omitempty"`
	ShareID     string       `json:"shareID,omitempty"`
	// Static is the instance of a partition that somebody else has made.
	Static *machine.GPUInstance `json:"static,omitempty"`
	// Share is how the device is shared; nil where it is not.
	Share *Share `json:"share,omitempty"`
}

// Prepare plans an allocation. Errors name the device: failure.Absent where the
// machine does not have it, failure.Busy where it cannot work as it is. Any other
// sickness is a matter of taints and tolerations, which the scheduler has weighed.
func Prepare(a Allocation, m *machine.Machine) (Plan, error) {
	var p Plan
	for _, r := range a.Results {
		device, ok := m.Device(r.Device)
		if !ok {
			return Plan{}, NotHere(r)
		}
		if err := p.add(r, device, m); err != nil {
			return Plan{}, err
		}
	}
	p.Steps = append(p.Steps, p.mps(m)...)
	return p, nil
}

// NotHere is the error of a device that the machine does not have.
func NotHere(r Result) error {
	return failure.New(failure.Absent,
		"request %s: device %s is not on this node; it was there when it was published, or the allocation was made by hand: delete the claim, or its Pod where it is made from a template, to have another one allocated",
		r.Request, r.Device)
}

func (p *Plan) add(r Result, device machine.Device, m *machine.Machine) error {
	prepared := Device{
		Request: r.Request, Name: device.Name, Kind: device.Kind, GPU: device.GPU.UUID, AdminAccess: r.AdminAccess,
		ShareID: r.ShareID,
	}
	if device.Partition != nil {
		prepared.Static = device.Partition.Instance
	}
	p.Devices = append(p.Devices, prepared)
	switch {
	case r.AdminAccess && device.Kind == machine.KindMIG && !device.Partition.Static():
		return failure.New(failure.Invalid,
			"request %s: adminAccess: true, but partition %s only exists while a claim has it: claim monitor.dovetail.dev to look at its GPU",
			r.Request, r.Device)
	case r.AdminAccess:
		return nil
	case device.Kind == machine.KindMonitor:
		return failure.New(failure.Invalid,
			"request %s: adminAccess: false, but device %s only looks at a GPU that others may have: set adminAccess to true, or claim gpu.dovetail.dev",
			r.Request, r.Device)
	case !device.GPU.Health.Usable():
		return failure.New(failure.Busy, "request %s: device %s cannot be used: %s", r.Request, r.Device, device.GPU.Health.Message)
	case slices.Contains(p.Holds, device.Name):
		return failure.New(failure.Conflict, "request %s: device %s is allocated twice in one claim", r.Request, r.Device)
	}
	share, err := shareOf(r, device, m)
	if err != nil {
		return fmt.Errorf("request %s: device %s: %w", r.Request, r.Device, err)
	}
	for _, s := range p.Steps {
		if s.Kind == SetTimeSlice && s.GPU == device.GPU.UUID && r.Config.Interval != "" && s.Interval != r.Config.Interval {
			return failure.New(failure.Invalid,
				"sharing.timeSlicing.interval: %s for request %s, and %s for request %s, but both have time slices of one GPU: want the same",
				s.Interval, s.Request, r.Config.Interval, r.Request)
		}
	}
	p.Devices[len(p.Devices)-1].Share = share
	p.Locks = append(p.Locks, device.GPU.Name())
	if device.Kind.Shared() {
		p.join(device)
	} else {
		p.Holds = append(p.Holds, holds(device)...)
	}
	p.Steps = append(p.Steps, steps(r, device)...)
	return nil
}

// join notes that whoever has the GPU as the same device may have it, too.
func (p *Plan) join(d machine.Device) {
	if p.Joins == nil {
		p.Joins = map[string]string{}
	}
	p.Joins[d.GPU.Name()] = d.Name
	for _, unit := range memoryUnits(d) {
		p.Joins[unit] = d.Name
	}
}

// holds names the device and its memory units, so that whatever overlaps it clashes
// with it: a whole GPU, its shares, and any partition that lies on the same unit.
func holds(d machine.Device) []string { return append([]string{d.Name}, memoryUnits(d)...) }

func memoryUnits(d machine.Device) []string {
	units := machine.Placement{Size: d.GPU.MIG.Totals().MemoryUnits}
	if d.Partition != nil {
		units = d.Partition.Placement
	}
	var names []string
	for unit := units.Start; unit < units.Start+units.Size; unit++ {
		names = append(names, MemoryUnit(d.GPU, unit))
	}
	return names
}

// MemoryUnit names a memory unit of a GPU as plans hold it.
func MemoryUnit(gpu *machine.GPU, unit int) string {
	return gpu.Name() + "/memory-unit-" + strconv.Itoa(unit)
}
