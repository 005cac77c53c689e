package simulator

import (
	"cmp"
	"context"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// NICHome implements hardware.NICs.
func (c *NICs) NICHome(ctx context.Context, function machine.Address) (machine.NICHome, error) {
	if err := c.wait(ctx, function, CallNICHome); err != nil {
		return machine.NICHome{}, err
	}
	var home machine.NICHome
	err := c.call(function, CallNICHome, func(s *State, f Function) (err error) {
		home, err = s.home(f)
		return err
	})
	return home, err
}

func (s *State) home(f Function) (machine.NICHome, error) {
	home := machine.NICHome{Address: f.Address, RDMA: f.RDMA, RDMAMoves: f.RDMA != "" && s.Network.RDMAExclusive}
	if f.RDMANamespace != "" {
		return home, failure.New(failure.Conflict, "%s: RDMA device %s is in network namespace %s", f, f.RDMA, f.RDMANamespace)
	}
	for _, d := range f.Netdevs {
		if d.Namespace != "" {
			return home, failure.New(failure.Conflict, "%s: interface %s is in network namespace %s", f, d.Name, d.Namespace)
		}
		home.Netdevs = append(home.Netdevs, machine.NetdevHome{
			Name: d.Name, MAC: d.MAC, MTU: d.MTU, Up: d.Up,
			Addresses: slices.Clone(d.Addresses), Routes: slices.Clone(d.Routes),
		})
	}
	if f.VF < 0 {
		home.DCB = f.NIC.DCB
	}
	return home, nil
}

// BringHome implements hardware.NICs.
func (c *NICs) BringHome(ctx context.Context, home machine.NICHome) error {
	if err := c.wait(ctx, home.Address, CallBringHome); err != nil {
		return err
	}
	return c.call(home.Address, CallBringHome, func(s *State, f Function) error { return s.bringHome(f, home) })
}

func (s *State) bringHome(f Function, home machine.NICHome) error {
	if slices.Contains(s.Network.Sealed, f.RDMANamespace) {
		return failure.New(failure.Busy, "%s: RDMA device %s is in network namespace %s, which is ending", f, f.RDMA, f.RDMANamespace)
	}
	was := make([]machine.NetdevHome, len(f.Netdevs))
	for i, d := range f.Netdevs {
		if slices.Contains(s.Network.Sealed, d.Namespace) {
			return failure.New(failure.Busy, "%s: interface %s is in network namespace %s, which is ending", f, d.Name, d.Namespace)
		}
		var err error
		if was[i], err = homeOf(home, d, i); err != nil {
			return err
		}
		if owner := s.owner(was[i].Name, ""); owner != "" && owner != f.String() {
			return failure.New(failure.Conflict, "%s: its interface's name %s is that of %s on the host by now: rename that one", f, was[i].Name, owner)
		}
	}
	f.RDMANamespace = ""
	for i, h := range was {
		f.Netdevs[i] = NetdevState{Name: h.Name, MAC: h.MAC, MTU: h.MTU, Up: h.Up, Addresses: slices.Clone(h.Addresses), Routes: slices.Clone(h.Routes)}
	}
	if f.VF < 0 {
		f.NIC.setDCB(home.DCB)
	}
	return nil
}

// SetDCB implements hardware.NICs.
func (c *NICs) SetDCB(ctx context.Context, nic machine.Address, want machine.DCB) (machine.DCB, error) {
	if err := c.wait(ctx, nic, CallSetDCB); err != nil {
		return machine.DCB{}, err
	}
	var has machine.DCB
	err := c.call(nic, CallSetDCB, func(_ *State, f Function) error {
		switch {
		case f.VF >= 0 || f.NIC.DCB.Trust == "":
			return failure.New(failure.Unsupported, "%s: its driver does not speak DCB", f)
		case f.away():
			return failure.New(failure.Conflict, "%s: its interface is in another network namespace", f)
		}
		f.NIC.setDCB(want)
		has = f.NIC.DCB
		return nil
	})
	return has, err
}

// setDCB sets what is not zero. Trust in the VLAN tag is an empty application table.
func (n NIC) setDCB(want machine.DCB) {
	dcb := n.NICState.DCB
	if want.Lossless() {
		dcb.PFC = want.PFC
	}
	if len(want.DSCP) > 0 {
		dcb.DSCP, dcb.Trust = slices.Clone(want.DSCP), machine.TrustDSCP
	}
	if dcb.Trust = cmp.Or(want.Trust, dcb.Trust); dcb.Trust == machine.TrustPCP {
		dcb.DSCP = nil
	}
	if want.ETS != nil {
		ets := *want.ETS
		dcb.ETS = &ets
	}
	n.NICState.DCB = dcb
}
