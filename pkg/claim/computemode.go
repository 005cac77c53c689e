package claim

import (
	"context"
	"errors"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// computeMode sets how many processes a GPU takes.
type computeMode struct{ *Manager }

func (m computeMode) observe(ctx context.Context, s plan.Step, again bool) (plan.Step, error) {
	if again {
		return s, nil
	}
	others, err := m.sharers(ctx, s)
	if err != nil {
		return s, err
	}
	if len(others.steps) > 0 {
		s.Before = others.steps[0].Before
		return s, nil
	}
	s.Before, err = m.GPUs.ComputeMode(ctx, s.GPU)
	return s, err
}

// sharers are the claims that have a GPU's compute mode for a control daemon.
func (m computeMode) sharers(ctx context.Context, s plan.Step) (joint, error) {
	if !s.ForMPS {
		return joint{}, nil
	}
	return m.jointly(ctx, func(other plan.Step) bool { return other.Kind == s.Kind && other.GPU == s.GPU && other.ForMPS })
}

func (m computeMode) do(ctx context.Context, s plan.Step, _ attempt) (outcome, error) {
	now, err := m.GPUs.ComputeMode(ctx, s.GPU)
	if err == nil && now != s.ComputeMode {
		err = m.GPUs.SetComputeMode(ctx, s.GPU, s.ComputeMode)
	}
	return outcome{}, err
}

func (m computeMode) undo(ctx context.Context, s plan.Step, _ *outcome) error {
	users, err := m.sharers(ctx, s)
	if err != nil || users.more() {
		return err
	}
	now, err := m.GPUs.ComputeMode(ctx, s.GPU)
	if errors.Is(err, failure.Absent) {
		return nil // the GPU is gone, or its driver, and its mode with it
	}
	if err != nil || now != s.ComputeMode || now == s.Before {
		return err
	}
	return m.GPUs.SetComputeMode(ctx, s.GPU, s.Before)
}
