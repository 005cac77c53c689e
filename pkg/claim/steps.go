package claim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// operation is what there is to do about one kind of step. The caller has the
// GPU's lock.
type operation interface {
	// observe completes a step with what undoing it will need. again says that it was
	// done before: what was true then stays, unless it is plain that it is no more.
	observe(ctx context.Context, s plan.Step, again bool) (plan.Step, error)
	// do makes the hardware show the step, and changes nothing where it does so
	// already. failure.Conflict means that nothing was done.
	do(ctx context.Context, s plan.Step, a attempt) (outcome, error)
	// undo takes the change back; undoing it twice, or what was never done, is no
	// error. What somebody else has changed since is left as it is. made is nil
	// where nobody knows whether the step was done.
	undo(ctx context.Context, s plan.Step, made *outcome) error
}

// attempt is one time that a step is done.
type attempt struct {
	// first says that nobody can have done it before: what lies there is somebody
	// else's.
	first bool
	// made is the outcome on record; nil where nobody was told of one.
	made *outcome
	// remake notes durably that what was made is gone and is made again.
	remake func() error
}

func (m *Manager) operation(s plan.Step) operation {
	switch s.Kind {
	case plan.SetComputeMode:
		return computeMode{m}
	case plan.EnableMIG:
		return migMode{m}
	case plan.MakeGPUInstance:
		return gpuInstance{m}
	case plan.MakeComputeInstance:
		return computeInstance{m}
	case plan.SetTimeSlice:
		return timeSlice{m}
	case plan.StartMPS:
		return mps{m}
	case plan.MakeNamespace:
		return namespace{m}
	case plan.ReserveNIC:
		return nic{m}
	default:
		return unknown{}
	}
}

// unknown is a step of another version.
type unknown struct{}

func (unknown) observe(_ context.Context, s plan.Step, _ bool) (plan.Step, error) {
	return s, unknownStep(s)
}

func (unknown) do(_ context.Context, s plan.Step, _ attempt) (outcome, error) {
	return outcome{}, unknownStep(s)
}

func (unknown) undo(_ context.Context, s plan.Step, _ *outcome) error { return unknownStep(s) }

func unknownStep(s plan.Step) error {
	return failure.New(failure.Unsupported, "a step of kind %q is not known to this version of dovetail-node: run the version that wrote it", s.Kind)
}

// carryOut does the steps of an entry, recording each outcome before the next
// step. again says that this is not the first time: steps with an outcome on record
// are done where the hardware does not show them, and only a new outcome is
// recorded, so that "not done" always means that nobody was told that the claim is
// ready.
func (m *Manager) carryOut(ctx context.Context, e *journal.Entry, again bool) error {
	for i := range e.Steps {
		s, err := stepOf(e, i)
		if err == nil && again {
			s, err = m.observeAgain(ctx, e, i, s)
		}
		if err != nil {
			return err
		}
		a := attempt{first: !again}
		if a.made, err = outcomeOf(e, i); err != nil {
			return err
		}
		a.remake = func() error {
			m.Remade(e.Claim, s.Partition.Device)
			return m.putOutcome(e, i, outcome{Remade: true})
		}
		made, err := m.operation(s).do(ctx, s, a)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Kind, m.forgetUndone(e, i, err))
		}
		failpoint.Pass(failpoint.StepDone)
		if err := m.putOutcome(e, i, made); err != nil {
			return err
		}
	}
	return nil
}

// observeAgain records what is no longer true of step i, before it is done again.
func (m *Manager) observeAgain(ctx context.Context, e *journal.Entry, i int, s plan.Step) (plan.Step, error) {
	now, err := m.operation(s).observe(ctx, s, true)
	if err != nil || reflect.DeepEqual(now, s) {
		return s, err
	}
	if e.Steps[i].Intent, err = json.Marshal(now); err != nil {
		return s, err
	}
	return now, m.Journal.Put(e)
}

// putOutcome records a step's outcome where that is news.
func (m *Manager) putOutcome(e *journal.Entry, i int, made outcome) error {
	result, err := json.Marshal(made)
	if err != nil || bytes.Equal(e.Steps[i].Outcome, result) {
		return err
	}
	e.Steps[i].Outcome = result
	if err := m.Journal.Put(e); err != nil {
		return err
	}
	failpoint.Pass(failpoint.OutcomeWritten)
	return nil
}

// forgetUndone takes step i, which failed with err, off the record where nothing of it
// was done: undoing it would look for what was made, and find what somebody else has
// made in its place. What is left must not be taken for all that there is to do.
func (m *Manager) forgetUndone(e *journal.Entry, i int, err error) error {
	if !errors.Is(err, failure.Conflict) || e.Steps[i].Done() {
		return err
	}
	e.Steps, e.Releasing = e.Steps[:i], true
	return errors.Join(err, m.Journal.Put(e))
}

// takeBack undoes an entry of the caller's own, last step first: whatever of it was
// done. What was done in an earlier boot is undone by that boot's end.
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
	if err := m.Journal.Delete(e.Claim.UID); err != nil {
		return err
	}
	failpoint.Pass(failpoint.JournalRemoved)
	return nil
}

// undoAll stops at the first step that cannot be undone: those before it made what
// it needs. What the claim need not wait for is owed instead.
func (m *Manager) undoAll(ctx context.Context, e *journal.Entry) error {
	m.markReleasing(ctx, e)
	for i := begun(e) - 1; i >= 0; i-- {
		s, err := stepOf(e, i)
		if err != nil {
			return err
		}
		made, err := outcomeOf(e, i)
		if err != nil {
			return err
		}
		err = m.operation(s).undo(ctx, s, made)
		if isOwed(err) && !isDebt(e) {
			err = m.owe(e, s)
		}
		if err != nil {
			return fmt.Errorf("undo %s: %w", s.Kind, err)
		}
		failpoint.Pass(failpoint.StepUndone)
	}
	return nil
}

// begun counts the steps that may have been done: an outcome is on record before the
// next step is begun.
func begun(e *journal.Entry) int {
	for i, s := range e.Steps {
		if !s.Done() {
			return i + 1
		}
	}
	return len(e.Steps)
}

// markReleasing notes that undoing has begun, so that whoever goes on after a crash
// does not do again what was undone. Without the note it would be done, and undone
// once more: a full disk must not keep a claim from being released.
func (m *Manager) markReleasing(ctx context.Context, e *journal.Entry) {
	if e.Releasing || len(e.Steps) == 0 {
		return
	}
	e.Releasing = true
	if err := m.Journal.Put(e); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot note that a claim is being released", "claim", e.Claim)
	}
	failpoint.Pass(failpoint.ReleaseWritten)
}
