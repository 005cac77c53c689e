package claimtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// SettleNICs takes the NICs as they are now for what they are without any claim: after
// somebody has changed them by hand. Those that are not at home are left as they were.
func (w *World) SettleNICs(ctx context.Context) error {
	now := map[machine.Address]machine.NICHome{}
	err := w.eachFunction(func(function machine.Address) error {
		home, err := w.Machine.NICs().NICHome(ctx, function)
		if errors.Is(err, failure.Conflict) {
			home, err = w.homes[function], nil
		}
		now[function] = home
		return err
	})
	w.homes = now
	return err
}

// eachFunction goes through the NICs and VFs that are there.
func (w *World) eachFunction(visit func(machine.Address) error) error {
	state, err := w.Machine.State()
	if err != nil {
		return err
	}
	for _, f := range state.Functions() {
		if err := visit(f.Address); err != nil {
			return err
		}
	}
	return nil
}

// Namespace is that of a Pod with the claim.
func Namespace(claim string) string { return "pod-" + claim }

// Start does what the runtime does for a container with all of a claim's devices: it
// runs the hooks that the CDI specification names.
func (w *World) Start(claim string) error {
	orders, err := w.Orders(claim)
	if err != nil {
		return err
	}
	for _, order := range orders {
		if err := w.Machine.MoveNIC(order, Namespace(claim)); err != nil {
			return err
		}
	}
	return nil
}

// End lets the claim's Pod end, and its network namespace with it.
func (w *World) End(claim string) error { return w.Machine.EndNamespace(Namespace(claim)) }

// Orders are those to move NICs that a claim's CDI specification has.
func (w *World) Orders(claim string) ([]hardware.NICMove, error) {
	content, err := os.ReadFile(w.path("cdi", "dovetail.dev-claim-uid-"+claim+".json"))
	if err != nil {
		return nil, err
	}
	var spec specs.Spec
	if err := json.Unmarshal(content, &spec); err != nil {
		return nil, err
	}
	var orders []hardware.NICMove
	for _, d := range spec.Devices {
		for _, hook := range d.ContainerEdits.Hooks {
			for _, arg := range hook.Args {
				text, is := strings.CutPrefix(arg, "--order=")
				if !is {
					continue
				}
				var order hardware.NICMove
				if err := json.Unmarshal([]byte(text), &order); err != nil {
					return nil, fmt.Errorf("order of device %s: %w", d.Name, err)
				}
				orders = append(orders, order)
			}
		}
	}
	return orders, nil
}

// nics compares NICs with the records: those that no claim has reserved are at home, and
// what they were; orders are as the records have it.
func (w *World) nics(ctx context.Context, records []journal.Record) (differences []string, err error) {
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	reserved := map[machine.Address]string{}
	for _, r := range records {
		if r.Entry == nil {
			continue
		}
		steps, err := stepsOf(r.Entry)
		if err != nil {
			return nil, err
		}
		ordered := map[machine.Address]machine.NICHome{}
		if orders, err := w.Orders(r.Entry.Claim.Name); err == nil {
			for _, order := range orders {
				ordered[order.Home.Address] = order.Home
			}
		}
		for _, s := range steps {
			if s.Kind != plan.ReserveNIC {
				continue
			}
			if other := reserved[s.Reserved.Function]; other != "" {
				differ("%s is reserved for %s and for %s", s.Device, other, r.Entry.Claim)
			}
			reserved[s.Reserved.Function] = r.Entry.Claim.String()
			if was := w.homes[s.Reserved.Function]; s.Home == nil || w.homes != nil && !reflect.DeepEqual(*s.Home, was) {
				differ("%s is on record for %s as %+v, it was %+v", s.Device, r.Entry.Claim, s.Home, was)
			}
			if s.Home != nil && len(s.Home.Netdevs) > 0 && !reflect.DeepEqual(ordered[s.Reserved.Function], *s.Home) {
				differ("%s: the CDI specification of claim %s has not its order", s.Device, r.Entry.Claim)
			}
		}
	}
	if w.homes == nil {
		return differences, nil
	}
	return differences, w.eachFunction(func(function machine.Address) error {
		if reserved[function] != "" {
			return nil
		}
		home, err := w.Machine.NICs().NICHome(ctx, function)
		switch {
		case errors.Is(err, failure.Conflict):
			differ("%s is not at home, and no claim has it: %v", function, err)
			return nil
		case err == nil && !reflect.DeepEqual(home, w.homes[function]):
			differ("%s is %+v, it was %+v", function, home, w.homes[function])
		}
		return err
	})
}
