package claim

import (
	"encoding/json"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// detail is what the journal keeps of a plan beside its steps.
type detail struct {
	Devices []plan.Device `json:"devices"`
}

// outcome is what the journal keeps of a step that was done.
type outcome struct {
	// Remade says that what was made was gone and is made again: what is found in its
	// place is it.
	Remade bool `json:"remade,omitempty"`
	// GPUInstance is the ID that a partition's GPU instance was given.
	GPUInstance *int `json:"gpuInstance,omitempty"`
	// ComputeInstance in that GPU instance.
	ComputeInstance *machine.ComputeInstance `json:"computeInstance,omitempty"`
	// Devices that a control daemon is over, and where its clients find it.
	Devices []string            `json:"devices,omitempty"`
	MPS     *hardware.MPSDaemon `json:"mps,omitempty"`
	// Pipe of a namespace's clients.
	Pipe string `json:"pipe,omitempty"`
}

func newEntry(c journal.Claim, bootID string, p plan.Plan) (*journal.Entry, error) {
	e := &journal.Entry{Claim: c, BootID: bootID, Holds: p.Holds, Joins: p.Joins, Locks: p.Locks}
	var err error
	if e.Detail, err = json.Marshal(detail{Devices: p.Devices}); err != nil {
		return nil, err
	}
	for _, s := range p.Steps {
		var step journal.Step
		if step.Intent, err = json.Marshal(s); err != nil {
			return nil, err
		}
		if s.Kind == plan.ReserveNIC { // done by being on record: no write of its own
			if step.Outcome, err = json.Marshal(outcome{}); err != nil {
				return nil, err
			}
		}
		e.Steps = append(e.Steps, step)
	}
	return e, nil
}

func devicesOf(e *journal.Entry) ([]plan.Device, error) {
	var d detail
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return nil, failure.New(failure.Corrupt, "record of claim %s: devices: %w", e.Claim, err)
	}
	return d.Devices, nil
}

func stepOf(e *journal.Entry, i int) (plan.Step, error) {
	var s plan.Step
	if err := json.Unmarshal(e.Steps[i].Intent, &s); err != nil {
		return s, failure.New(failure.Corrupt, "record of claim %s: step %d: %w", e.Claim, i, err)
	}
	return s, nil
}

// outcomeOf is nil where a step was not done.
func outcomeOf(e *journal.Entry, i int) (*outcome, error) {
	if !e.Steps[i].Done() {
		return nil, nil
	}
	var o outcome
	if err := json.Unmarshal(e.Steps[i].Outcome, &o); err != nil {
		return nil, failure.New(failure.Corrupt, "record of claim %s: outcome of step %d: %w", e.Claim, i, err)
	}
	return &o, nil
}

// described are an entry's devices as the container runtime is told of them.
func described(e *journal.Entry, now *machine.Machine) ([]cdi.Device, error) {
	devices, err := devicesOf(e)
	if err != nil {
		return nil, err
	}
	done, err := doneOf(e)
	if err != nil {
		return nil, err
	}
	out := make([]cdi.Device, 0, len(devices))
	for _, d := range devices {
		device := cdi.Device{
			Request: d.Request, Name: d.Name, ShareID: d.ShareID, GPU: d.GPU, AdminAccess: d.AdminAccess,
			Partition: done.partition(d), MPS: done.mps(d, devices), NIC: done.nic(d),
		}
		if d.Kind == machine.KindMIG {
			if err := locate(device.Partition, e, d, now); err != nil {
				return nil, err
			}
		}
		if d.Share != nil && d.Share.ByDriver {
			device.MemoryLimit = d.Share.Memory
		}
		out = append(out, device)
	}
	return out, nil
}

// locate completes a partition with its GPU's number. Without a partition the container
// would get the whole GPU.
func locate(p *cdi.Partition, e *journal.Entry, d plan.Device, now *machine.Machine) error {
	if p == nil {
		return failure.New(failure.Corrupt, "record of claim %s: partition %s has no instances", e.Claim, d.Name)
	}
	gpu, known := now.GPU(d.GPU)
	if !known {
		return failure.New(failure.Absent, "device %s: GPU %s is gone", d.Name, d.GPU)
	}
	p.GPUMinor = gpu.Minor
	return nil
}

// doneStep is a step with its outcome.
type doneStep struct {
	plan.Step
	outcome
}

type doneSteps []doneStep

func doneOf(e *journal.Entry) (doneSteps, error) {
	var done doneSteps
	for i := range e.Steps {
		s, err := stepOf(e, i)
		if err != nil {
			return nil, err
		}
		o, err := outcomeOf(e, i)
		if err != nil {
			return nil, err
		}
		if o != nil {
			done = append(done, doneStep{s, *o})
		}
	}
	return done, nil
}

// partition is the one that a device is; nil where it is none.
func (done doneSteps) partition(d plan.Device) *cdi.Partition {
	if d.Static != nil && len(d.Static.ComputeInstances) > 0 {
		return partition(d.Static.ID, d.Static.ComputeInstances[0])
	}
	for _, s := range done {
		if s.Kind == plan.MakeComputeInstance && s.Step.Partition.Device == d.Name && s.GPUInstance != nil && s.ComputeInstance != nil {
			return partition(*s.GPUInstance, *s.ComputeInstance)
		}
	}
	return nil
}

func partition(gpuInstance int, c machine.ComputeInstance) *cdi.Partition {
	return &cdi.Partition{GPUInstance: gpuInstance, ComputeInstance: c.ID, UUID: c.UUID}
}

// mps is how a device's containers find their control daemon; nil where they have
// none. Limits are for all of the daemon's devices, in its order: a request's
// processes see all that the request has.
func (done doneSteps) mps(d plan.Device, all []plan.Device) *cdi.MPS {
	if d.Share == nil || d.Share.Kind != machine.KindMPS {
		return nil
	}
	i := slices.IndexFunc(done, func(s doneStep) bool { return s.MPS != nil && s.has(d) })
	if i < 0 {
		return nil
	}
	daemon := done[i]
	m := &cdi.MPS{Pipe: daemon.MPS.Pipe, Shm: daemon.MPS.Shm, LowPriority: d.Share.LowPriority}
	for _, s := range done {
		if s.Kind == plan.MakeNamespace && s.Request == d.Request && d.Kind.SharesGPU() {
			m.Pipe = s.Pipe // which has the limits
			return m
		}
	}
	limits := plan.LimitsOf(d, all)
	m.ThreadPercentage = limits.Threads
	for _, member := range daemon.Set {
		m.Memory = append(m.Memory, limits.Memory[member.GPU])
	}
	return m
}

// has says whether a control daemon is over a device.
func (s *doneStep) has(d plan.Device) bool {
	return slices.ContainsFunc(s.Set, func(m plan.Member) bool { return s.is(m, d) })
}

// is says whether a member of a control daemon's set is a device.
func (s *doneStep) is(m plan.Member, d plan.Device) bool {
	switch {
	case m.GPU != d.GPU:
		return false
	case m.Partition != nil:
		return m.Partition.Device == d.Name
	case m.Static != "":
		return d.Static != nil && d.Static.ComputeInstances[0].UUID == m.Static
	}
	return d.Kind != machine.KindMIG
}
