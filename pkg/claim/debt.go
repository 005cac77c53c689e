package claim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// A claim must not wait for what may take for ever: for a GPU's MIG mode to go off,
// which takes that nobody has the GPU open and nobody else has a partition of it, or
// for a dovetail-mps that may have started something before it went away. That is then
// owed: it stays on record without the claim, and mending tries it.

// owed is the error of a step that cannot be undone now, and need not be for the claim.
// because is nil where there is nothing to tell of it.
type owed struct{ because error }

func (o *owed) Error() string {
	if o.because == nil {
		return "it is undone later"
	}
	return o.because.Error()
}

func (o *owed) Unwrap() error { return o.because }

// isOwed says whether an error means that.
func isOwed(err error) bool {
	var o *owed
	return errors.As(err, &o)
}

// isDebt says whether a record is of something owed and not of a claim: every claim has
// a namespace.
func isDebt(e *journal.Entry) bool { return e.Claim.Namespace == "" }

// owe records a step of an entry that is to be undone.
func (m *Manager) owe(e *journal.Entry, s plan.Step) error {
	intent, err := json.Marshal(plan.Step{Kind: s.Kind, GPU: s.GPU, Set: s.Set, Namespace: s.Namespace})
	if err != nil {
		return err
	}
	done, err := json.Marshal(outcome{})
	if err != nil {
		return err
	}
	of := s.GPU
	if gpu, known := m.Machine().GPU(s.GPU); known {
		of = gpu.Name()
	}
	sum := sha256.Sum256(intent)
	return m.Journal.Put(&journal.Entry{
		Claim:     journal.Claim{Name: string(s.Kind) + " of " + of, UID: "owed-" + hex.EncodeToString(sum[:8])},
		BootID:    m.BootID,
		Locks:     e.Locks,
		Steps:     []journal.Step{{Intent: intent, Outcome: done}},
		Releasing: true,
	})
}

// stillOwed is nil where an error of a debt is as it should be for now.
func stillOwed(err error) error {
	var o *owed
	if errors.As(err, &o) && o.because == nil || errors.Is(err, failure.Unreachable) || errors.Is(err, failure.Unsupported) {
		return nil
	}
	return err
}
