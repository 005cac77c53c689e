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
		before, err := m.GPUs.ComputeMode(ctx, s.GPU)
		s.Before = before
		return s, err
	default:
		return s, unknownStep(s)
	}
}

// shows says whether the hardware shows a step as done.
func (m *Manager) shows(ctx context.Context, s plan.Step) (bool, error) {
	switch s.Kind {
	case plan.SetComputeMode:
		now, err := m.GPUs.ComputeMode(ctx, s.GPU)
		return now == s.ComputeMode, err
	default:
		return false, unknownStep(s)
	}
}

// do makes a step's change; doing it again is no error.
func (m *Manager) do(ctx context.Context, s plan.Step) error {
	switch s.Kind {
	case plan.SetComputeMode:
		return m.GPUs.SetComputeMode(ctx, s.GPU, s.ComputeMode)
	default:
		return unknownStep(s)
	}
}

// undo takes a step's change back; undoing it twice, or what was never done, is no
// error. What somebody else has changed since is left as it is.
func (m *Manager) undo(ctx context.Context, s plan.Step) error {
	switch s.Kind {
	case plan.SetComputeMode:
		now, err := m.GPUs.ComputeMode(ctx, s.GPU)
		if errors.Is(err, failure.Absent) {
			return nil // the GPU is gone, or its driver, and its mode with it
		}
		if err != nil || now != s.ComputeMode || now == s.Before {
			return err
		}
		return m.GPUs.SetComputeMode(ctx, s.GPU, s.Before)
	default:
		return unknownStep(s)
	}
}

func unknownStep(s plan.Step) error {
	return failure.New(failure.Unsupported, "a step of kind %q is not known to this version of dovetail-node: run the version that wrote it", s.Kind)
}

// carryOut does the steps of an entry, recording each outcome before the next
// step. Steps with an outcome on record are done again where the hardware does not
// show them; the record stays as it is, so that "not done" always means that
// nobody was told that the claim is ready.
func (m *Manager) carryOut(ctx context.Context, e *journal.Entry) error {
	for i := range e.Steps {
		s, err := stepOf(e, i)
		if err != nil {
			return err
		}
		if e.Steps[i].Done() {
			shown, err := m.shows(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Kind, err)
			}
			if shown {
				continue
			}
		}
		if err := m.do(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.Kind, err)
		}
		failpoint.Pass(failpoint.StepDone)
		if e.Steps[i].Done() {
			continue
		}
		e.Steps[i].Outcome = done()
		if err := m.Journal.Put(e); err != nil {
			return err
		}
		failpoint.Pass(failpoint.OutcomeWritten)
	}
	return nil
}

// takeBack undoes an entry, last step first: whatever of it was done. What was
// done in an earlier boot is undone by that boot's end.
func (m *Manager) takeBack(ctx context.Context, e *journal.Entry) error {
	if err := m.CDI.Remove(e.Claim.UID); err != nil {
		return err
	}
	failpoint.Pass(failpoint.CDIRemoved)
	if e.BootID == m.BootID {
		if err := m.undoAll(ctx, e); err != nil {
			return err
		}
	}
	failpoint.Pass(failpoint.StepUndone)
	if err := m.Journal.Delete(e.Claim.UID); err != nil {
		return err
	}
	failpoint.Pass(failpoint.JournalRemoved)
	return nil
}

func (m *Manager) undoAll(ctx context.Context, e *journal.Entry) error {
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
	return errors.Join(errs...)
}
