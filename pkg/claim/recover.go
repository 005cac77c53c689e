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

// Problem is something that was found and people should know.
type Problem struct {
	ClaimUID string
	Err      error
}

// Recover goes through the journal at start, without the API server: unfinished
// files are removed, and the claims mended.
func (m *Manager) Recover(ctx context.Context) ([]Problem, error) {
	if err := errors.Join(m.Journal.Sweep(), m.CDI.Sweep()); err != nil {
		return nil, fmt.Errorf("remove unfinished files: %w", err)
	}
	return m.Mend(ctx)
}

// Mend makes right what can be made right from the journal alone. Claims whose
// preparation was interrupted are undone, since nobody was told that they are
// ready; the others get back what is gone of them: a CDI specification that was
// wiped, or that names another driver's files, and settings that a reload of the
// driver has lost. A damaged record is set aside and rebuilt from the copy in the
// claim's CDI specification. What could not be done is returned; it does not stop
// the rest, and calling again tries again.
func (m *Manager) Mend(ctx context.Context) ([]Problem, error) {
	records, err := m.Journal.List()
	if err != nil {
		return nil, err
	}
	var problems []Problem
	known := map[string]bool{}
	for _, r := range records {
		known[r.UID] = true
		if err := m.mendOne(ctx, r.UID); err != nil {
			problems = append(problems, Problem{ClaimUID: r.UID, Err: err})
		}
	}
	specified, err := m.CDI.Claims()
	if err != nil {
		return problems, err
	}
	for _, uid := range specified {
		if known[uid] {
			continue
		}
		if err := m.restore(ctx, uid); err != nil {
			problems = append(problems, Problem{ClaimUID: uid, Err: err})
		}
	}
	return problems, ctx.Err()
}

// busyAfter is how long mending waits for a lock. A lock ends with its process, so
// who holds one that long is alive: a call works on the claim, here or in the
// agent that this one replaces, and nothing was interrupted.
const busyAfter = time.Second

func (m *Manager) mendOne(ctx context.Context, uid string) error {
	patient, cancel := context.WithTimeout(ctx, busyAfter)
	defer cancel()
	unlock, err := m.lockClaim(patient, journal.Claim{UID: uid})
	if err != nil {
		return unlessBusy(err)
	}
	defer unlock()
	entry, err := m.Journal.Get(uid)
	switch {
	case errors.Is(err, failure.Absent):
		return nil // released meanwhile
	case errors.Is(err, failure.Corrupt):
		return m.rebuild(uid, err)
	case err != nil:
		return err
	case entry.BootID != m.BootID:
		return nil // hardware and containers are gone; made again when the kubelet asks
	}
	unlockDevices, err := m.Locks.Lock(patient, entry.Locks...)
	if err != nil {
		return unlessBusy(err)
	}
	defer unlockDevices()
	if !entry.Complete() {
		klog.FromContext(ctx).Info("Undoing an interrupted preparation", "claim", entry.Claim, "claimUID", uid)
		return m.takeBack(ctx, entry)
	}
	return m.refresh(ctx, entry.Clone())
}

// refresh brings a prepared claim up to date. A GPU that is gone is reported as
// what it is, elsewhere; what the runtime knows of it stays.
func (m *Manager) refresh(ctx context.Context, e *journal.Entry) error {
	if err := m.carryOut(ctx, e); err != nil && !errors.Is(err, failure.Absent) && !errors.Is(err, failure.Unreachable) {
		return err
	}
	err := m.describe(e)
	if err != nil && m.CDI.Has(e.Claim.UID) {
		return nil
	}
	return err
}

func unlessBusy(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// rebuild replaces a damaged record by the copy in the claim's CDI specification. It
// always returns what is to be told.
func (m *Manager) rebuild(uid string, damage error) error {
	aside, err := m.Journal.SetAside(uid)
	if err != nil {
		return errors.Join(damage, err)
	}
	damage = fmt.Errorf("record of claim %s is damaged and was moved to %s: %w", uid, aside, damage)
	if err := m.copyBack(uid); err != nil {
		return errors.Join(damage, fmt.Errorf("it could not be rebuilt, kubelet's next call for the claim makes a new one: %w", err))
	}
	return fmt.Errorf("%w; it was rebuilt from the claim's CDI specification", damage)
}

// restore puts back the record of a claim that only has a CDI specification: that
// is removed before the record, so the record was lost.
func (m *Manager) restore(ctx context.Context, uid string) error {
	patient, cancel := context.WithTimeout(ctx, busyAfter)
	defer cancel()
	unlock, err := m.lockClaim(patient, journal.Claim{UID: uid})
	if err != nil {
		return unlessBusy(err)
	}
	defer unlock()
	if _, err := m.Journal.Get(uid); !errors.Is(err, failure.Absent) {
		return nil // made meanwhile
	}
	if !m.CDI.Has(uid) {
		return nil // released meanwhile
	}
	return m.restoreLocked(uid)
}

// restoreLocked is restore for who has the claim's lock. It always returns what is
// to be told.
func (m *Manager) restoreLocked(uid string) error {
	if err := m.copyBack(uid); err != nil {
		return fmt.Errorf("the record of claim %s was lost and could not be rebuilt: %w", uid, err)
	}
	return failure.New(failure.Corrupt, "the record of claim %s was lost; it was rebuilt from the claim's CDI specification", uid)
}

// copyBack writes the record of which the claim's CDI specification has a copy.
func (m *Manager) copyBack(uid string) error {
	entry, err := m.copyOf(uid)
	if err != nil {
		return err
	}
	return m.Journal.Put(entry)
}

// copyOf reads the copy of a claim's record in its CDI specification.
func (m *Manager) copyOf(uid string) (*journal.Entry, error) {
	copied, err := m.CDI.Record(uid)
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
