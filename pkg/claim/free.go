package claim

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// WhileFree runs a change of hardware that no claim has, and that none gets meanwhile. It
// is named as plans name what they hold and lock. failure.Conflict names the claim that
// has it.
func (m *Manager) WhileFree(ctx context.Context, name string, change func() error) error {
	unlock, err := m.Locks.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.refuseHeld(ctx, journal.Claim{}, &plan.Plan{Holds: []string{name}}); err != nil {
		return err
	}
	return change()
}
