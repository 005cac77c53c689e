package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// observe completes a step with what undoing it will need.
func (m *Manager) observe(ctx context.Context, s plan.Step) (plan.Step, error) {
	switch s.Kind {
	case plan.SetComputeMode:
		before, err := m.gpus.ComputeMode(ctx, s.GPU)
		s.Before = before
		return s, err
	default:
		return s, unknownStep(s)
	}
}

// do makes a step's change; doing it again is no error.
func (m *Manager) do(ctx context.Context, s plan.Step) error {
	switch s.Kind {
	case plan.SetComputeMode:
		return m.gpus.SetComputeMode(ctx, s.GPU, s.ComputeMode)
	default:
		return unknownStep(s)
	}
}

// undo takes a step's change back; undoing it twice, or what was never done, is no
// error. What somebody else has changed since is left as it is.
func (m *Manager) undo(ctx context.Context, s plan.Step) error {
	switch s.Kind {
	case plan.SetComputeMode:
		now, err := m.gpus.ComputeMode(ctx, s.GPU)
		if errors.Is(err, failure.Absent) {
			return nil // the GPU is gone, and its mode with it
		}
		if err != nil || now != s.ComputeMode || now == s.Before {
			return err
		}
		return m.gpus.SetComputeMode(ctx, s.GPU, s.Before)
	default:
		return unknownStep(s)
	}
}

func unknownStep(s plan.Step) error {
	return failure.New(failure.Corrupt, "a step of kind %q is not known to this version", s.Kind)
}

// carryOut does all steps of an entry that are not done, recording each outcome
// before the next step.
func (m *Manager) carryOut(ctx context.Context, e *journal.Entry) error {
	for i := range e.Steps {
		if e.Steps[i].Done() {
			continue
		}
		s, err := stepOf(e, i)
		if err != nil {
			return err
		}
		if err := m.do(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.Kind, err)
		}
		failpoint.Pass(failpoint.StepDone)
		e.Steps[i].Outcome = done()
		if err := m.journal.Put(e); err != nil {
			return err
		}
		failpoint.Pass(failpoint.OutcomeWritten)
	}
	return nil
}

// takeBack undoes an entry, last step first: whatever of it was done.
func (m *Manager) takeBack(ctx context.Context, e *journal.Entry) error {
	if err := m.cdi.Remove(e.Claim.UID); err != nil {
		return err
	}
	failpoint.Pass(failpoint.CDIRemoved)
	var errs []error
	for i := range slices.Backward(e.Steps) {
		s, err := stepOf(e, i)
		if err == nil {
			err = m.undo(ctx, s)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("undo %s: %w", s.Kind, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	failpoint.Pass(failpoint.StepUndone)
	if err := m.journal.Delete(e.Claim.UID); err != nil {
		return err
	}
	failpoint.Pass(failpoint.JournalRemoved)
	return nil
}
