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
		if name, clash := clash(p, holder); clash {
			return told(&taken{by: holder.Claim, text: func(claim string) string {
				return fmt.Sprintf("%s is still held for %s: it is free once the kubelet has seen that claim's Pods end and released it", name, claim)
			}}, ref)
		}
	}
	return nil
}

// clash returns what both want and cannot have together.
func clash(p *plan.Plan, holder *journal.Entry) (string, bool) {
	held := map[string]string{} // as what device; empty: alone
	for _, name := range holder.Holds {
		held[name] = ""
	}
	for name, device := range holder.Joins {
		held[name] = device
	}
	for _, name := range p.Holds {
		if _, taken := held[name]; taken {
			return describeHold(name, held[name]), true
		}
	}
	for name, device := range p.Joins {
		if as, taken := held[name]; taken && as != device {
			return describeHold(name, as), true
		}
	}
	return "", false
}

func describeHold(name, as string) string {
	if as == "" {
		return "device " + name
	}
	return fmt.Sprintf("device %s, shared as %s,", name, as)
}
