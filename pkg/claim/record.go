package claim

import (
	"encoding/json"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/failure"
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
	Done bool `json:"done"`
	// GPUInstance is the ID that a partition's GPU instance was given.
	GPUInstance *int `json:"gpuInstance,omitempty"`
	// ComputeInstance in that GPU instance.
	ComputeInstance *machine.ComputeInstance `json:"computeInstance,omitempty"`
}

func newEntry(c journal.Claim, bootID string, p plan.Plan) (*journal.Entry, error) {
	e := &journal.Entry{Claim: c, BootID: bootID, Holds: p.Holds, Locks: p.Locks}
	var err error
	if e.Detail, err = json.Marshal(detail{Devices: p.Devices}); err != nil {
		return nil, err
	}
	for _, s := range p.Steps {
		intent, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		e.Steps = append(e.Steps, journal.Step{Intent: intent})
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
func described(e *journal.Entry) ([]cdi.Device, error) {
	devices, err := devicesOf(e)
	if err != nil {
		return nil, err
	}
	made, err := partitionsOf(e)
	if err != nil {
		return nil, err
	}
	out := make([]cdi.Device, 0, len(devices))
	for _, d := range devices {
		if d.Static != nil && len(d.Static.ComputeInstances) > 0 {
			made[d.Name] = partition(d.Static.ID, d.Static.ComputeInstances[0])
		}
		out = append(out, cdi.Device{Request: d.Request, Name: d.Name, GPU: d.GPU, AdminAccess: d.AdminAccess, Partition: made[d.Name]})
	}
	return out, nil
}

// partitionsOf are the partitions that an entry's steps have made, by device.
func partitionsOf(e *journal.Entry) (map[string]*cdi.Partition, error) {
	made := map[string]*cdi.Partition{}
	for i := range e.Steps {
		s, err := stepOf(e, i)
		if err != nil {
			return nil, err
		}
		o, err := outcomeOf(e, i)
		if err != nil {
			return nil, err
		}
		if s.Kind == plan.MakeComputeInstance && o != nil && o.GPUInstance != nil && o.ComputeInstance != nil {
			made[s.Partition.Device] = partition(*o.GPUInstance, *o.ComputeInstance)
		}
	}
	return made, nil
}

func partition(gpuInstance int, c machine.ComputeInstance) *cdi.Partition {
	return &cdi.Partition{GPUInstance: gpuInstance, ComputeInstance: c.ID, UUID: c.UUID}
}
