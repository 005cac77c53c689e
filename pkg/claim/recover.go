package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// Problem is something that recovery found and people should know.
type Problem struct {
	ClaimUID string
	Err      error
}

// Recover goes through the journal at start, without the API server. Claims whose
// preparation was interrupted are undone, since nobody was told that they are
// ready; the others get their CDI specification back where it is gone. A damaged
// record is set aside and, where the claim's CDI specification still has a copy,
// rebuilt from it. What could not be done is returned; it does not stop the rest.
func (m *Manager) Recover(ctx context.Context) ([]Problem, error) {
	if err := errors.Join(m.journal.Sweep(), m.cdi.Sweep()); err != nil {
		return nil, fmt.Errorf("remove unfinished files: %w", err)
	}
	records, err := m.journal.List()
	if err != nil {
		return nil, err
	}
	var problems []Problem
	known := map[string]bool{}
	for _, r := range records {
		known[r.UID] = true
		problem, err := m.recoverOne(ctx, r.UID)
		if err != nil {
			return problems, err // only the end of ctx
		}
		if problem != nil {
			problems = append(problems, Problem{ClaimUID: r.UID, Err: problem})
		}
	}
	return append(problems, m.restoreLost(ctx, known)...), nil
}

// busyAfter is how long recovery waits for a lock. A lock ends with its process, so
// who holds one that long is alive: the agent that this one replaces works on the
// claim, and nothing was interrupted.
const busyAfter = time.Second

func (m *Manager) recoverOne(ctx context.Context, uid string) (problem, fatal error) {
	patient, cancel := context.WithTimeout(ctx, busyAfter)
	defer cancel()
	unlock, err := m.lockClaim(patient, journal.Claim{UID: uid})
	if err != nil {
		return unlessBusy(err), ctx.Err()
	}
	defer unlock()
	entry, err := m.journal.Get(uid)
	switch {
	case errors.Is(err, failure.Absent):
		return nil, nil // released meanwhile by the agent that this one replaces
	case errors.Is(err, failure.Corrupt):
		return m.rebuild(uid, err), nil
	case err != nil:
		return err, nil
	}
	entry = entry.Clone()
	unlockDevices, err := m.locks.Lock(patient, locksOf(entry)...)
	if err != nil {
		return unlessBusy(err), ctx.Err()
	}
	defer unlockDevices()
	switch boot := m.machine().BootID; {
	case boot == "":
		return nil, nil // the hardware cannot be seen yet; kubelet's next call repairs
	case entry.BootID != boot:
		return nil, nil // hardware and containers are gone; made again when kubelet asks
	case !entry.Complete():
		klog.FromContext(ctx).Info("Undoing an interrupted preparation", "claim", entry.Claim, "claimUID", uid)
		return m.takeBack(ctx, entry), nil
	}
	return m.describe(entry), nil
}

func unlessBusy(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// rebuild replaces a damaged record by the copy in the claim's CDI specification.
func (m *Manager) rebuild(uid string, damage error) error {
	aside, err := m.journal.SetAside(uid)
	if err != nil {
		return errors.Join(damage, err)
	}
	damage = fmt.Errorf("record of claim %s is damaged and was moved to %s: %w", uid, aside, damage)
	if err := m.copyBack(uid); err != nil {
		return errors.Join(damage, fmt.Errorf("it could not be rebuilt, kubelet's next call for the claim makes a new one: %w", err))
	}
	return fmt.Errorf("%w; it was rebuilt from the claim's CDI specification", damage)
}

// copyBack writes the record of which the claim's CDI specification has a copy.
func (m *Manager) copyBack(uid string) error {
	entry, err := m.copyOf(uid)
	if err != nil {
		return err
	}
	return m.journal.Put(entry)
}

// copyOf reads the copy of a claim's record in its CDI specification.
func (m *Manager) copyOf(uid string) (*journal.Entry, error) {
	copied, err := m.cdi.Record(uid)
	if err != nil {
		return nil, err
	}
	entry, err := journal.Unmarshal(copied)
	if err != nil {
		return nil, fmt.Errorf("CDI specification of claim %s: copy of the record: %w", uid, err)
	}
	if entry.Claim.UID != uid {
		return nil, failure.New(failure.Corrupt, "CDI specification of claim %s has the record of claim %s", uid, entry.Claim.UID)
	}
	return entry, nil
}

// restoreLost puts back the records of claims that only have a CDI specification: it
// is removed before the record, so the record was lost.
func (m *Manager) restoreLost(ctx context.Context, known map[string]bool) []Problem {
	uids, err := m.cdi.Claims()
	if err != nil {
		return []Problem{{Err: err}}
	}
	var problems []Problem
	for _, uid := range uids {
		if known[uid] {
			continue
		}
		if err := m.restoreOne(ctx, uid); err != nil {
			problems = append(problems, Problem{ClaimUID: uid, Err: err})
		}
	}
	return problems
}

func (m *Manager) restoreOne(ctx context.Context, uid string) error {
	patient, cancel := context.WithTimeout(ctx, busyAfter)
	defer cancel()
	unlock, err := m.lockClaim(patient, journal.Claim{UID: uid})
	if err != nil {
		return unlessBusy(err)
	}
	defer unlock()
	if _, err := m.journal.Get(uid); !errors.Is(err, failure.Absent) {
		return nil // made meanwhile by the agent that this one replaces
	}
	if err := m.copyBack(uid); err != nil {
		return err
	}
	return fmt.Errorf("the record of claim %s was lost; it was rebuilt from the claim's CDI specification", uid)
}

// startOver prepares an entry of an earlier boot to be carried out again: nothing
// of it is done, and what was before is read anew.
func (m *Manager) startOver(ctx context.Context, e *journal.Entry, boot string) error {
	e.BootID = boot
	for i := range e.Steps {
		e.Steps[i].Outcome = nil
		if err := m.observeAgain(ctx, e, i); err != nil {
			return err
		}
	}
	return m.journal.Put(e)
}

func (m *Manager) observeAgain(ctx context.Context, e *journal.Entry, i int) error {
	s, err := stepOf(e, i)
	if err != nil {
		return err
	}
	if s, err = m.observe(ctx, s); err != nil {
		return err
	}
	return setStep(e, i, s)
}

// repair marks those steps to be done again that the hardware does not show.
func (m *Manager) repair(ctx context.Context, e *journal.Entry) error {
	for i := range e.Steps {
		s, err := stepOf(e, i)
		if err != nil {
			return err
		}
		now, err := m.observe(ctx, s)
		if err != nil {
			return err
		}
		if now.Before != s.ComputeMode {
			e.Steps[i].Outcome = nil
		}
	}
	return nil
}

// Reconcile releases what is on record for claims that the API server no longer
// has, or no longer allocates. An error of the API server ends it; calling again
// goes on.
func (m *Manager) Reconcile(ctx context.Context) (released []journal.Claim, problems []Problem, err error) {
	records, err := m.journal.List()
	if err != nil {
		return nil, nil, err
	}
	for _, r := range records {
		if r.Err != nil {
			continue
		}
		live, err := m.live(ctx, r.Entry.Claim)
		if err != nil && !errors.Is(err, failure.Absent) {
			return released, problems, fmt.Errorf("look up claim %s: %w", r.Entry.Claim, err)
		}
		if err == nil && live.Status.Allocation != nil {
			continue
		}
		klog.FromContext(ctx).Info("Releasing a claim that no longer exists or is no longer allocated", "claim", r.Entry.Claim, "claimUID", r.UID)
		if err := m.Unprepare(ctx, r.Entry.Claim); err != nil {
			problems = append(problems, Problem{ClaimUID: r.UID, Err: err})
			continue
		}
		released = append(released, r.Entry.Claim)
	}
	return released, problems, nil
}
