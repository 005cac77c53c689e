package claim

import (
	"context"
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// refuseHeld is the last line of defence: the scheduler excludes this, unless a
// claim was deleted by force while its Pod still runs.
func (m *Manager) refuseHeld(ctx context.Context, ref journal.Claim, p *plan.Plan) error {
	records, err := m.records(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		holder := r.Entry
		if holder == nil { // damaged since the start: what it holds stays held
			holder, _ = m.copyOf(r.UID)
		}
		if holder == nil || r.UID == ref.UID || holder.BootID != m.BootID {
			continue // of an earlier boot nothing is left that could be held
		}
		if name := p.Clash(holder.Holds, holder.Joins); name != "" {
			return told(&taken{by: holder.Claim, text: func(claim string) string {
				return fmt.Sprintf("%s is still held for %s: it is free once the kubelet has seen that claim's Pods end and released it", name, claim)
			}}, ref)
		}
	}
	return nil
}
