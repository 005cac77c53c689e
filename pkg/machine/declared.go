package machine

import (
	"fmt"
	"slices"
)

// declared are the pairs of the administrator's declaration that are there.
func (m *Machine) declared() []pairing {
	var found []pairing
	for _, pair := range m.Network.Pairs {
		gpu, nic := m.gpuAt(pair.GPU), m.NIC(pair.NIC)
		twice := slices.ContainsFunc(found, func(p pairing) bool { return p.gpu == gpu && p.nic == nic })
		if gpu != nil && nic != nil && nic.Offered() && !twice {
			found = append(found, pairing{gpu: gpu, nic: nic, closeness: ClosenessDeclared})
		}
	}
	return found
}

// declares says whether the GPU at an address is in a declared pair.
func (n *Network) declares(gpu Address) bool {
	return slices.ContainsFunc(n.Pairs, func(p DeclaredPair) bool { return p.GPU == gpu })
}

// takes says whether the NIC at an address is in a declared pair.
func (n *Network) takes(nic Address) bool {
	return slices.ContainsFunc(n.Pairs, func(p DeclaredPair) bool { return p.NIC == nic })
}

// networkFaults report what the administrator's declaration names, or asks for, and the
// machine does not have. The rest of it holds.
func (m *Machine) networkFaults() []Fault {
	var faults []Fault
	add := func(device Address, field, what string) {
		faults = append(faults, Fault{Device: device.String(), Kind: FaultUndeclared, Message: fmt.Sprintf(
			"the node's network configuration, %s: %s: correct it, or see what is there with dovetail-node topology", field, what)})
	}
	for i, pair := range m.Network.Pairs {
		if m.gpuAt(pair.GPU) == nil {
			add(pair.GPU, fmt.Sprintf("pairs[%d].gpu", i), fmt.Sprintf("there is no GPU at %s", pair.GPU))
		}
		if what := m.notOffered(pair.NIC); what != "" {
			add(pair.NIC, fmt.Sprintf("pairs[%d].nic", i), what)
		}
	}
	for _, rail := range m.Network.rails() {
		if what := m.notOffered(rail); what != "" {
			add(rail, fmt.Sprintf("rails[%d]", m.Network.Rails[rail]), what)
		}
	}
	for i, vfs := range m.Network.VFs {
		nic := m.NIC(vfs.NIC)
		if nic == nil {
			add(vfs.NIC, fmt.Sprintf("virtualFunctions[%d].nic", i), fmt.Sprintf("there is no NIC at %s", vfs.NIC))
		} else if what := nic.tooMany(vfs.Count); what != "" {
			add(vfs.NIC, fmt.Sprintf("virtualFunctions[%d].count", i), what)
		}
	}
	return faults
}

// tooMany says why the NIC cannot have that many virtual functions; empty where it can.
func (n *NIC) tooMany(vfs int) string {
	switch {
	case vfs <= n.MaxVFs:
		return ""
	case n.MaxVFs == 0:
		return fmt.Sprintf("%d: NIC %s can have no virtual functions before SR-IOV is enabled in the card's firmware and in the BIOS", vfs, n.Address)
	}
	return fmt.Sprintf("%d: NIC %s can have %d virtual functions at most", vfs, n.Address, n.MaxVFs)
}

// notOffered says why there is nothing to be had of the NIC at an address; empty where
// there is.
func (m *Machine) notOffered(a Address) string {
	nic := m.NIC(a)
	switch {
	case nic == nil:
		return fmt.Sprintf("there is no NIC at %s", a)
	case !nic.Offered():
		return fmt.Sprintf("NIC %s is not offered: %s", a, nic.WhyNot())
	}
	return ""
}

func (m *Machine) gpuAt(a Address) *GPU {
	for i := range m.GPUs {
		if m.GPUs[i].Address == a {
			return &m.GPUs[i]
		}
	}
	return nil
}
