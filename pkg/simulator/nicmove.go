package simulator

import (
	"cmp"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// MoveNIC does what dovetail-hook does: it moves a function into a network namespace,
// which is there once something is in it. Doing it twice is no error.
func (m *Machine) MoveNIC(move hardware.NICMove, namespace string) error {
	state, err := m.State()
	if err != nil {
		return err
	}
	f, err := state.function(move.Home.Address)
	if err != nil {
		return err
	}
	return m.callNIC(f.NIC.Spec.Address.String(), CallMoveNIC, func(s *State, _ NIC) error {
		f, err := s.function(move.Home.Address)
		if err != nil {
			return err
		}
		return s.move(f, move, namespace)
	})
}

func (s *State) move(f Function, move hardware.NICMove, namespace string) error {
	for i := range f.Netdevs {
		d := &f.Netdevs[i]
		home, err := homeOf(move.Home, *d, i)
		if err != nil {
			return err
		}
		name := home.Name
		if i == 0 {
			name = cmp.Or(move.Name, name)
		}
		mtu := cmp.Or(move.MTU, home.MTU)
		switch owner := s.owner(name, namespace); {
		case d.Namespace != "" && d.Namespace != namespace:
			return failure.New(failure.Conflict, "%s: interface %s is in network namespace %s", f, d.Name, d.Namespace)
		case owner != "" && (d.Namespace != namespace || d.Name != name):
			return failure.New(failure.Conflict, "%s: interface name %s is that of %s in network namespace %s: choose another", f, name, owner, namespace)
		case mtu > f.NIC.Model.MaxMTU:
			return failure.New(failure.Invalid, "%s: MTU %d: give at most %d", f, mtu, f.NIC.Model.MaxMTU)
		}
		*d = NetdevState{Name: name, MAC: d.MAC, MTU: mtu, Up: true, Namespace: namespace}
		if i > 0 || len(move.Addresses) == 0 {
			d.Addresses, d.Routes = slices.Clone(home.Addresses), slices.Clone(home.Routes)
		} else {
			d.Addresses, d.Routes = slices.Clone(move.Addresses), slices.Clone(move.Routes)
		}
	}
	if f.RDMA != "" && s.Network.RDMAExclusive {
		f.RDMANamespace = namespace
	}
	f.flushDCB()
	return nil
}

// homeOf is what an interface was at home, which is known by its hardware address.
func homeOf(home machine.NICHome, d NetdevState, i int) (machine.NetdevHome, error) {
	at := slices.IndexFunc(home.Netdevs, func(h machine.NetdevHome) bool { return h.MAC == d.MAC })
	if at < 0 {
		return machine.NetdevHome{}, failure.New(failure.Absent, "function %s: its interface %d has hardware address %s, which none had at home",
			home.Address, i, d.MAC)
	}
	return home.Netdevs[at], nil
}

// flushDCB is what a move between namespaces does: the application table is the
// namespace's, and an empty one takes the port back to trust in the VLAN tag.
func (f Function) flushDCB() {
	if f.VF >= 0 || f.NIC.DCB.Trust == "" || len(f.Netdevs) == 0 {
		return
	}
	f.NIC.NICState.DCB.DSCP, f.NIC.NICState.DCB.Trust = nil, machine.TrustPCP
}

var errHost = failure.New(failure.Invalid, "the host's network namespace cannot end: name another one")

// SealNamespace lets nobody into a network namespace any more, as while it is ending.
func (m *Machine) SealNamespace(name string) error {
	if name == "" {
		return errHost
	}
	return m.updateNICs(func(s *State) error {
		if !slices.Contains(s.Network.Sealed, name) {
			s.Network.Sealed = append(s.Network.Sealed, name)
		}
		return nil
	})
}

// EndNamespace lets a network namespace end, as it does with the last process of a Pod.
// The kernel takes back what was in it: under the name that it had there, or another
// where that is taken on the host; down, without addresses and routes.
func (m *Machine) EndNamespace(name string) error {
	if name == "" {
		return errHost
	}
	return m.updateNICs(func(s *State) error {
		s.Network.Sealed = slices.DeleteFunc(s.Network.Sealed, func(n string) bool { return n == name })
		for _, f := range s.Functions() {
			if f.RDMANamespace == name {
				f.RDMANamespace = ""
			}
			for i := range f.Netdevs {
				if f.Netdevs[i].Namespace == name {
					s.takeBack(&f.Netdevs[i])
					f.flushDCB()
				}
			}
		}
		return nil
	})
}

// takeBack is the kernel's default_device_exit_net (linux, net/core/dev.c).
func (s *State) takeBack(d *NetdevState) {
	name := d.Name
	if s.nameTaken(name) {
		name = s.freeName("dev")
	}
	*d = NetdevState{Name: name, MAC: d.MAC, MTU: d.MTU}
}
