package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// gpuInstance makes a partition's share of memory and engines.
type gpuInstance struct{ *Manager }

func (m gpuInstance) observe(_ context.Context, s plan.Step, _ bool) (plan.Step, error) {
	return s, nil
}

func (m gpuInstance) do(ctx context.Context, s plan.Step, a attempt) (outcome, error) {
	if !a.first {
		there, err := m.find(ctx, s)
		switch {
		case err != nil:
			return outcome{}, err
		case there != nil && !a.made.is(there):
			return outcome{}, failure.New(failure.Conflict,
				"partition %s: it was destroyed by hand, and GPU instance %d was made in its place: destroy that with nvidia-smi mig, or delete the Pod",
				s.Partition.Device, there.ID)
		case there != nil:
			return outcome{GPUInstance: &there.ID}, nil
		}
	}
	if a.made != nil && !a.made.Remade {
		if err := a.remake(); err != nil {
			return outcome{}, err
		}
	}
	id, err := m.GPUs.MakeGPUInstance(ctx, s.GPU, s.Partition.ProfileID, s.Partition.Placement)
	if err != nil {
		return outcome{}, fmt.Errorf("partition %s: %w", s.Partition.Device, err)
	}
	return outcome{GPUInstance: &id}, nil
}

func (m gpuInstance) undo(ctx context.Context, s plan.Step, made *outcome) error {
	there, err := m.find(ctx, s)
	if err != nil || there == nil || !made.is(there) {
		return unlessGone(err)
	}
	if err := m.empty(ctx, s, there); err != nil {
		return err
	}
	return destroyed(s, there.ID, m.GPUs.DestroyGPUInstance(ctx, s.GPU, there.ID))
}

// is says whether an instance, found in the right place, is the one that was made.
// Where nobody knows what was made it is.
func (o *outcome) is(i *machine.GPUInstance) bool {
	return o == nil || o.GPUInstance == nil || *o.GPUInstance == i.ID
}

// computeInstance makes a partition's share of multiprocessors: all that its GPU
// instance has. The instance itself was made by the step before.
type computeInstance struct{ *Manager }

func (m computeInstance) observe(_ context.Context, s plan.Step, _ bool) (plan.Step, error) {
	return s, nil
}

func (m computeInstance) do(ctx context.Context, s plan.Step, _ attempt) (outcome, error) {
	there, err := m.find(ctx, s)
	switch {
	case err != nil:
		return outcome{}, err
	case there == nil:
		return outcome{}, failure.New(failure.Absent, "partition %s: its GPU instance was destroyed by somebody else a moment ago", s.Partition.Device)
	case len(there.ComputeInstances) > 0:
		return outcome{GPUInstance: &there.ID, ComputeInstance: &there.ComputeInstances[0]}, nil
	}
	made, err := m.GPUs.MakeComputeInstance(ctx, s.GPU, there.ID)
	if err != nil {
		return outcome{}, fmt.Errorf("partition %s: %w", s.Partition.Device, err)
	}
	return outcome{GPUInstance: &there.ID, ComputeInstance: &made}, nil
}

func (m computeInstance) undo(ctx context.Context, s plan.Step, made *outcome) error {
	there, err := m.find(ctx, s)
	if err != nil || there == nil || !made.is(there) {
		return unlessGone(err)
	}
	return m.empty(ctx, s, there)
}

// find returns a step's GPU instance as the hardware has it; nil where there is none.
func (m *Manager) find(ctx context.Context, s plan.Step) (*machine.GPUInstance, error) {
	now, err := m.GPUs.Partitions(ctx, s.GPU)
	if err != nil {
		return nil, fmt.Errorf("partition %s: %w", s.Partition.Device, err)
	}
	i := slices.IndexFunc(now.Instances, func(i machine.GPUInstance) bool { return s.Partition.Is(&i) })
	if i < 0 {
		return nil, nil
	}
	return &now.Instances[i], nil
}

// empty destroys the compute instances of a GPU instance of ours: all that is in it
// is ours.
func (m *Manager) empty(ctx context.Context, s plan.Step, in *machine.GPUInstance) error {
	for _, c := range in.ComputeInstances {
		if err := destroyed(s, in.ID, m.GPUs.DestroyComputeInstance(ctx, s.GPU, in.ID, c.ID)); err != nil {
			return err
		}
	}
	return nil
}

// destroyed makes of a destruction's error what the caller wants to know.
func destroyed(s plan.Step, instance int, err error) error {
	if err = unlessGone(err); err != nil {
		return fmt.Errorf("partition %s: %w", s.Partition.Device, held(err, s.GPU, &instance))
	}
	return nil
}

// unlessGone: what is gone, alone or with its GPU or driver, is undone.
func unlessGone(err error) error {
	if errors.Is(err, failure.Absent) {
		return nil
	}
	return err
}

// refuseTaken refuses a partition where the hardware, as it is now, has no room for
// it: somebody changed it since it was last described.
func refuseTaken(gpu *machine.GPU, now hardware.Partitions, p *plan.Partition) error {
	if !now.Enabled && !gpu.MIG.OnDemand {
		return failure.New(failure.Conflict,
			"partition %s: MIG mode of GPU %s was switched off by hand a moment ago, and takes a reset to switch on: %s",
			p.Device, gpu.UUID, gpu.MIG.HowToSwitch(gpu.Address.String(), 1))
	}
	for _, there := range now.Instances {
		if there.Placement.Overlaps(p.Placement) {
			return failure.New(failure.Conflict,
				"partition %s: memory units %d to %d are taken by GPU instance %d (%s), which was made by hand a moment ago: destroy it with nvidia-smi mig, or delete the Pod to have it scheduled elsewhere",
				p.Device, there.Placement.Start, there.Placement.Start+there.Placement.Size-1, there.ID, profileName(gpu, &there))
		}
	}
	return nil
}

func profileName(gpu *machine.GPU, i *machine.GPUInstance) string {
	if profile, ok := gpu.MIG.Profile(i.ProfileID); ok {
		return profile.Name
	}
	return fmt.Sprintf("profile %d", i.ProfileID)
}
