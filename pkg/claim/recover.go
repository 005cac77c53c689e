package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
// ready, and so are those whose release was; the others get back what is gone of them: a CDI specification that was
// wiped, or that names another driver's files, and settings that a reload of the
// driver has lost. A damaged record is set aside and rebuilt from the copy in the
// claim's CDI specification. What could not be done is returned; it does not stop
// the rest, and calling again tries again.
func (m *Manager) Mend(ctx context.Context) ([]Problem, error) {
	records, err := m.Journal.List()
	if err != nil {
		return nil, err
	}
	specified, err := m.CDI.Claims()
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		specified = append(specified, r.UID)
	}
	var problems []Problem
	for _, uid := range slices.Compact(slices.Sorted(slices.Values(specified))) {
		if err := m.mendOne(ctx, uid); err != nil {
			problems = append(problems, Problem{ClaimUID: uid, Err: m.named(err)})
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
	entry, told, err := m.heal(uid)
	switch {
	case told != nil:
		return told
	case errors.Is(err, failure.Absent):
		return nil // released meanwhile
	case err != nil:
		return err
	case entry.BootID != m.BootID && isDebt(entry):
		return m.Journal.Delete(uid)
	case entry.BootID != m.BootID:
		return nil // hardware and containers are gone; made again when the kubelet asks
	}
	unlockDevices, err := m.Locks.Lock(patient, entry.Locks...)
	if err != nil {
		return unlessBusy(err)
	}
	defer unlockDevices()
	if entry.Releasing || !entry.Complete() {
		klog.FromContext(ctx).Info("Undoing an interrupted preparation, or release", "claim", entry.Claim, "claimUID", uid)
		err := m.takeBack(ctx, entry.Clone())
		if isDebt(entry) {
			return stillOwed(err)
		}
		return err
	}
	return m.refresh(ctx, entry.Clone())
}

// refresh brings a prepared claim up to date. A GPU that is gone is reported as
// what it is, elsewhere; what the runtime knows of it stays.
func (m *Manager) refresh(ctx context.Context, e *journal.Entry) error {
	if err := m.carryOut(ctx, e, true); err != nil && !errors.Is(err, failure.Absent) && !errors.Is(err, failure.Unreachable) {
		return err
	}
	_, err := m.describe(e)
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

// heal reads a record, and puts it back where it is damaged, or lost: a CDI
// specification is removed before the record, so where only that is there, the record
// was lost. told is what became of it; nil where there was nothing to heal. The caller
// has the claim's lock.
func (m *Manager) heal(uid string) (entry *journal.Entry, told, err error) {
	entry, err = m.Journal.Get(uid)
	switch {
	case errors.Is(err, failure.Corrupt):
		told = m.rebuild(uid, err)
	case errors.Is(err, failure.Absent) && m.CDI.Has(uid):
		told = m.restore(uid)
	default:
		return entry, nil, err
	}
	entry, err = m.Journal.Get(uid)
	return entry, told, err
}

// rebuild replaces a damaged record by the copy in the claim's CDI specification, and
// returns what is to be told.
func (m *Manager) rebuild(uid string, damage error) error {
	aside, err := m.Journal.SetAside(uid)
	if err != nil {
		return errors.Join(damage, err)
	}
	damage = fmt.Errorf("record of claim %s is damaged and was moved to %s: %w", uid, aside, damage)
	if err := m.copyBack(uid); err != nil {
		return errors.Join(damage, fmt.Errorf("it could not be rebuilt, kubelet's next call for the claim makes a new one: %w", err))
	}
	if err := m.Journal.Settle(uid); err != nil {
		return errors.Join(damage, err)
	}
	return fmt.Errorf("%w; it was rebuilt from the claim's CDI specification", damage)
}

// restore puts a lost record back, and returns what is to be told.
func (m *Manager) restore(uid string) error {
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
