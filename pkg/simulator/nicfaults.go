package simulator

import (
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// Calls of hardware.NICs, and the move into a namespace, as Slow and Fail name them.
const (
	CallDescribeNIC = "DescribeNIC"
	CallNICHome     = "NICHome"
	CallBringHome   = "BringHome"
	CallSetVFs      = "SetVFs"
	CallSetDCB      = "SetDCB"
	CallMoveNIC     = "MoveNIC"
)

// CallNICs are all of them.
var CallNICs = []string{CallDescribeNIC, CallNICHome, CallBringHome, CallSetVFs, CallSetDCB, CallMoveNIC}

// updateNICs changes the network.
func (m *Machine) updateNICs(change func(*State) error) error {
	return m.Frozen(func(s *State) error {
		if err := change(s); err != nil {
			return err
		}
		if err := m.write(s); err != nil {
			return err
		}
		if m.followNICs != nil {
			m.followNICs(s)
		}
		return nil
	})
}

func (m *Machine) updateNIC(name string, change func(*State, NIC) error) error {
	return m.updateNICs(func(s *State) error {
		n, err := s.FindNIC(name)
		if err != nil {
			return err
		}
		return change(s, n)
	})
}

// callNIC is a call that changes a NIC, which fails where that was asked for.
func (m *Machine) callNIC(nic, call string, change func(*State, NIC) error) error {
	var failed error
	err := m.updateNIC(nic, func(s *State, n NIC) error {
		if n.Unplugged {
			return failure.New(failure.Absent, "NIC %s is not there: it was unplugged", n.Spec.Address)
		}
		if f, ok := n.next(call); ok {
			n.Unplugged = n.Unplugged || f.Error == FailureLost
			failed = f.of("NIC "+n.Spec.Address.String(), call)
			return nil
		}
		return change(s, n)
	})
	if err != nil {
		return err
	}
	return failed
}

// SetLink plugs a NIC's cable in, or pulls it out.
func (m *Machine) SetLink(nic string, there bool) error {
	return m.updateNIC(nic, func(_ *State, n NIC) error {
		n.NoLink = !there
		return nil
	})
}

// Unplug takes a NIC off the bus while the machine runs. What was in a network
// namespace has gone from there, too.
func (m *Machine) Unplug(nic string) error {
	return m.updateNIC(nic, func(_ *State, n NIC) error {
		n.Unplugged = true
		return nil
	})
}

// Plug puts it back: it is as after boot, but that another may have its name.
func (m *Machine) Plug(nic string) error {
	return m.updateNIC(nic, func(s *State, n NIC) error {
		if n.Unplugged {
			s.plug(n)
		}
		return nil
	})
}

// SetRDMAExclusive says whether RDMA devices belong to one network namespace, as
// `rdma system set netns` does. failure.Busy where one is away.
func (m *Machine) SetRDMAExclusive(exclusive bool) error {
	return m.updateNICs(func(s *State) error {
		for _, f := range s.Functions() {
			if f.RDMANamespace != "" {
				return failure.New(failure.Busy, "RDMA device %s is in network namespace %s: bring it back first", f.RDMA, f.RDMANamespace)
			}
		}
		s.Network.RDMAExclusive = exclusive
		return nil
	})
}

// TakeName lets another interface come up on the host under a name, and GiveName lets
// it go.
func (m *Machine) TakeName(name string) error {
	return m.updateNICs(func(s *State) error {
		if owner := s.owner(name, ""); owner != "" {
			return failure.New(failure.Conflict, "the name %s is that of %s", name, owner)
		}
		s.Network.Interfaces = append(s.Network.Interfaces, name)
		return nil
	})
}

// GiveName undoes TakeName.
func (m *Machine) GiveName(name string) error {
	return m.updateNICs(func(s *State) error {
		s.Network.Interfaces = slices.DeleteFunc(s.Network.Interfaces, func(n string) bool { return n == name })
		return nil
	})
}
