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
	before, err := m.GPUs.ComputeMode(ctx, s.GPU)
	s.Before = before
	return s, err
}

func (m computeMode) do(ctx context.Context, s plan.Step, _ bool) (outcome, error) {
	now, err := m.GPUs.ComputeMode(ctx, s.GPU)
	if err == nil && now != s.ComputeMode {
		err = m.GPUs.SetComputeMode(ctx, s.GPU, s.ComputeMode)
	}
	return outcome{Done: true}, err
}

func (m computeMode) undo(ctx context.Context, s plan.Step, _ *outcome) error {
	now, err := m.GPUs.ComputeMode(ctx, s.GPU)
	if errors.Is(err, failure.Absent) {
		return nil // the GPU is gone, or its driver, and its mode with it
	}
	if err != nil || now != s.ComputeMode || now == s.Before {
		return err
	}
	return m.GPUs.SetComputeMode(ctx, s.GPU, s.Before)
}
