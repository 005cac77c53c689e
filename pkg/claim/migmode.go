package claim

import (
	"context"
	"errors"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// migMode switches MIG on with a GPU's first partition, and off with its last.
type migMode struct{ *Manager }

// observe: a mode that was on by hand may be gone with a reload of the driver, and is
// on for claims alone when it comes back.
func (m migMode) observe(ctx context.Context, s plan.Step, again bool) (plan.Step, error) {
	if again && !s.MIGBefore {
		return s, nil
	}
	now, err := m.GPUs.Partitions(ctx, s.GPU)
	if err != nil {
		return s, err
	}
	ours, err := m.owned(ctx)
	s.MIGBefore = now.Enabled && !ours.enabled[s.GPU]
	return s, err
}

func (m migMode) do(ctx context.Context, s plan.Step, _ attempt) (outcome, error) {
	now, err := m.GPUs.Partitions(ctx, s.GPU)
	if err == nil && !now.Enabled {
		err = held(m.GPUs.SetMIGMode(ctx, s.GPU, true), s.GPU, nil)
	}
	return outcome{}, err
}

// undo looks at the hardware and the journal as they are now: other claims may have
// partitions of the GPU, and so may others than claims.
func (m migMode) undo(ctx context.Context, s plan.Step, _ *outcome) error {
	if s.MIGBefore {
		return nil
	}
	users, err := m.jointly(ctx, func(other plan.Step) bool { return other.Kind == s.Kind && other.GPU == s.GPU })
	if err != nil || users.more() {
		return err
	}
	now, err := m.GPUs.Partitions(ctx, s.GPU)
	switch {
	case errors.Is(err, failure.Absent):
		return nil
	case err != nil || !now.Enabled:
		return err
	}
	ours, err := m.owned(ctx)
	if err != nil {
		return err
	}
	for _, i := range now.Instances {
		if !ours.made(s.GPU, &i) {
			return &owed{}
		}
	}
	if len(now.Instances) > 0 {
		return nil // the claim's own: the mode is switched off with the last
	}
	err = held(m.GPUs.SetMIGMode(ctx, s.GPU, false), s.GPU, nil)
	if errors.Is(err, failure.Busy) {
		return &owed{because: err}
	}
	return err
}

// settleMode switches off what is owed of a GPU that is wanted whole, and refuses one
// that somebody has switched on by hand.
func (m *Manager) settleMode(ctx context.Context, gpu *machine.GPU) error {
	now, err := m.GPUs.Partitions(ctx, gpu.UUID)
	if err != nil || !now.Enabled {
		return err
	}
	ours, err := m.owned(ctx)
	if err != nil {
		return err
	}
	if ours.enabled[gpu.UUID] && len(now.Instances) == 0 {
		return held(m.GPUs.SetMIGMode(ctx, gpu.UUID, false), gpu.UUID, nil)
	}
	return failure.New(failure.Conflict,
		"GPU %s was switched to MIG mode by hand: %s, or delete the Pod to have it scheduled elsewhere", gpu.UUID, gpu.MIG.HowToSwitch(gpu.Address.String(), 0))
}
