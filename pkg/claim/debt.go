package claim

import (
	"encoding/json"
	"errors"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// A claim must not wait for a GPU's MIG mode to go off, which takes that nobody has the
// GPU open and nobody else has a partition of it: a monitor can have it open for ever.
// The mode is then owed: it stays on record without the claim, and mending tries it.

// owed is the error of a mode that cannot be switched off now. because is nil where
// that is as it should be.
type owed struct{ because error }

func (o *owed) Error() string {
	if o.because == nil {
		return "MIG mode stays on while others have partitions"
	}
	return o.because.Error()
}

func (o *owed) Unwrap() error { return o.because }

// isOwed says whether an error means that.
func isOwed(err error) (*owed, bool) {
	var o *owed
	return o, errors.As(err, &o)
}

// isDebt says whether a record is of a mode and not of a claim: every claim has a
// namespace.
func isDebt(e *journal.Entry) bool { return e.Claim.Namespace == "" }

// owe records a mode that is to go off.
func (m *Manager) owe(gpu *machine.GPU) error {
	intent, err := json.Marshal(plan.Step{Kind: plan.EnableMIG, GPU: gpu.UUID})
	if err != nil {
		return err
	}
	done, err := json.Marshal(outcome{})
	if err != nil {
		return err
	}
	return m.Journal.Put(&journal.Entry{
		Claim:     journal.Claim{Name: "MIG mode of " + gpu.Name(), UID: "mig-mode-" + gpu.Name()},
		BootID:    m.BootID,
		Locks:     []string{gpu.Name()},
		Steps:     []journal.Step{{Intent: intent, Outcome: done}},
		Releasing: true,
	})
}
