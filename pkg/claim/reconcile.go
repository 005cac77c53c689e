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

// Reconciled is what Reconcile did.
type Reconciled struct {
	// Released claims: gone from the API, and from the kubelet.
	Released []journal.Claim
	// Waiting is how many claims are gone from the API but may still be in use:
	// a Pod can outlive its claim, where that was deleted by force.
	Waiting  int
	Problems []Problem
}

// Reconcile releases what is on record for claims that the API server no longer
// has, or has allocated elsewhere, and that the kubelet has forgotten: as a rule
// the kubelet releases them itself, and has Patience to do so. An error of the API
// server ends it; calling again goes on.
func (m *Manager) Reconcile(ctx context.Context) (Reconciled, error) {
	var r Reconciled
	records, err := m.Journal.List()
	if err != nil {
		return r, err
	}
	for _, record := range records {
		if record.Err != nil || record.Entry.Releasing {
			continue // Mend's matter
		}
		claim := record.Entry.Claim
		wanted, err := m.wanted(ctx, record.Entry)
		if err != nil {
			return r, fmt.Errorf("look up claim %s: %w", claim, err)
		}
		if wanted {
			continue
		}
		if !m.goneLongEnough(claim.UID) {
			r.Waiting++
			continue
		}
		released, err := m.releaseGone(ctx, claim)
		switch {
		case err != nil:
			r.Problems = append(r.Problems, Problem{ClaimUID: claim.UID, Err: err})
		case released:
			r.Released = append(r.Released, claim)
		default:
			r.Waiting++
		}
	}
	return r, nil
}

// wanted says whether the API server has the claim with what is on record.
func (m *Manager) wanted(ctx context.Context, e *journal.Entry) (bool, error) {
	live, err := m.Live(ctx, e.Claim)
	if errors.Is(err, failure.Absent) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !m.holds(e, live) {
		return false, nil
	}
	m.back(e.Claim.UID)
	return true, nil
}

// goneLongEnough notes when a claim was first seen to be gone, and says whether
// the kubelet has had its time.
func (m *Manager) goneLongEnough(uid string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, known := m.gone[uid]
	if !known {
		since = time.Now()
		m.gone[uid] = since
	}
	return time.Since(since) >= m.Patience
}

// back forgets that a claim was gone.
func (m *Manager) back(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.gone, uid)
}

// releaseGone releases a claim unless it came back meanwhile, or the kubelet still
// has a Pod with it.
func (m *Manager) releaseGone(ctx context.Context, ref journal.Claim) (bool, error) {
	unlock, err := m.lockClaim(ctx, ref)
	if err != nil {
		return false, err
	}
	defer unlock()
	entry, err := m.Journal.Get(ref.UID)
	if errors.Is(err, failure.Absent) {
		m.back(ref.UID)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if wanted, err := m.wanted(ctx, entry); err != nil || wanted {
		return false, err
	}
	if used, err := m.InUse(ctx, ref); err != nil || used {
		return false, err
	}
	klog.FromContext(ctx).Info("Releasing a claim that the API server no longer has, nor the kubelet", "claim", ref, "claimUID", ref.UID)
	m.released.add(ref.UID)
	if err := m.release(ctx, entry.Clone()); err != nil {
		return false, err
	}
	m.back(ref.UID)
	return true, nil
}
