// Package plan decides, from an allocation and the machine, what is to be done
// and in which order. It is pure: it reads and changes nothing.
package plan

import (
	"fmt"

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

	// interfaces has the names and addresses in the Pod, with the request of each.
	interfaces map[string]string
	// nics are the steps for NICs, which come last: they are the first to be undone,
	// and nothing else waits for a Pod's namespace to end.
	nics []Step
}

// Device is one prepared device.
type Device struct {
	Request     string       `json:"request"`
	Name        string       `json:"name"`
	Kind        machine.Kind `json:"kind,omitempty"`
	GPU         string       `json:"gpu,omitempty"` // UUID
	AdminAccess bool         `json:"adminAccess,omitempty"`
	ShareID     string       `json:"shareID,omitempty"`
	// Placement of a partition; nil for others.
	Placement *machine.Placement `json:"placement,omitempty"`
	// Static is the instance of a partition that somebody else has made.
	Static *machine.GPUInstance `json:"static,omitempty"`
	// Share is how the device is shared; nil where it is not.
	Share *Share `json:"share,omitempty"`
	// NIC is the NIC's part; nil where it has none.
	NIC *NIC `json:"nic,omitempty"`
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
	p.Steps = append(p.Steps, p.nics...)
	return p, nil
}

// NotHere is the error of a device that the machine does not have.
func NotHere(r Result) error {
	return failure.New(failure.Absent,
		"request %s: device %s is not on this node; it was there when it was published, or the allocation was made by hand: delete the claim, or its Pod where it is made from a template, to have another one allocated",
		r.Request, r.Device)
}

func (p *Plan) add(r Result, d machine.Device, m *machine.Machine) error {
	prepared := Device{Request: r.Request, Name: d.Name, Kind: d.Kind, AdminAccess: r.AdminAccess, ShareID: r.ShareID}
	if d.GPU != nil {
		prepared.GPU = d.GPU.UUID
	}
	if d.Partition != nil {
		prepared.Placement, prepared.Static = &d.Partition.Placement, d.Partition.Instance
	}
	err := permitted(r, d)
	if err == nil && d.NIC != nil {
		prepared.NIC, err = nicOf(r, d, m)
	}
	if err == nil && !r.AdminAccess {
		err = p.take(r, d, &prepared, m)
	}
	if err != nil {
		return fmt.Errorf("request %s: device %s: %w", r.Request, r.Device, err)
	}
	p.Devices = append(p.Devices, prepared)
	return nil
}

// permitted refuses what the device cannot be used for, as it is.
func permitted(r Result, d machine.Device) error {
	health := d.Health()
	switch {
	case r.AdminAccess && d.Kind == machine.KindMIG && !d.Partition.Static():
		return failure.New(failure.Invalid,
			"adminAccess: true, but the partition only exists while a claim has it: claim monitor.dovetail.dev to look at its GPU")
	case r.AdminAccess:
		return nil
	case d.Kind == machine.KindMonitor:
		return failure.New(failure.Invalid,
			"adminAccess: false, but it only looks at a GPU that others may have: set adminAccess to true, or claim gpu.dovetail.dev")
	case d.NIC != nil && d.NIC.Health.Reason == machine.FaultLost:
		return failure.New(failure.Absent, "it has gone since it was allocated (%s): delete the Pod to have it scheduled again", d.NIC.Health.Message)
	case !health.Usable():
		return failure.New(failure.Busy, "it cannot be used: %s", health.Message)
	}
	return nil
}

// take adds what it takes for a claim to have a device.
func (p *Plan) take(r Result, d machine.Device, prepared *Device, m *machine.Machine) error {
	if err := p.claim(d); err != nil {
		return err
	}
	if d.GPU != nil {
		share, err := shareOf(r, d, m)
		if err != nil {
			return err
		}
		for _, s := range p.Steps {
			if s.Kind == SetTimeSlice && s.GPU == d.GPU.UUID && r.Config.Interval != "" && s.Interval != r.Config.Interval {
				return failure.New(failure.Invalid,
					"sharing.timeSlicing.interval: %s for request %s, and %s for request %s, but both have time slices of one GPU: want the same",
					s.Interval, s.Request, r.Config.Interval, r.Request)
			}
		}
		prepared.Share = share
		p.Locks = append(p.Locks, d.GPU.Name())
		p.Steps = append(p.Steps, steps(r, d)...)
	}
	if n := prepared.NIC; n != nil {
		if err := p.meet(r, d, n); err != nil {
			return err
		}
		p.Locks = append(p.Locks, n.Name)
		if n.Reserved = d.Moves() && !r.Config.NIC.KeepHost; n.Reserved {
			p.nics = append(p.nics, n.reserve(d, r.Request))
		}
	}
	return nil
}
