package machine

import (
	"fmt"
	"slices"
)

// Offered says whether anything of the NIC can be handed out: the NIC itself, or its
// virtual functions where it has any.
func (n *NIC) Offered() bool {
	if len(n.VFs) > 0 {
		return n.Withheld == "" && slices.ContainsFunc(n.VFs, func(v VF) bool { return v.Offered() })
	}
	return n.Withheld == "" && n.RDMA != nil
}

// WhyNot says why nothing of the NIC can be handed out; empty where something can.
func (n *NIC) WhyNot() string {
	switch {
	case n.Offered():
		return ""
	case n.Withheld != "":
		return n.Withheld
	case len(n.VFs) > 0:
		return fmt.Sprintf("none of its %d virtual functions can be used: give them a driver and RDMA devices, or remove them (echo 0 > /sys/bus/pci/devices/%s/sriov_numvfs)", len(n.VFs), n.Address)
	}
	return "it has no RDMA device"
}

// Offered says whether the VF can be handed out; its NIC must be offered, too.
func (v *VF) Offered() bool { return v.Withheld == "" && v.RDMA != nil }

func (n *NIC) offeredVFs() []*VF {
	var offered []*VF
	for i := range n.VFs {
		if n.VFs[i].Offered() {
			offered = append(offered, &n.VFs[i])
		}
	}
	return offered
}

// Name is the NIC's name as a whole device and as a counter set: "nic-1a-00".
func (n *NIC) Name() string { return n.named(KindNIC) }

func (n *NIC) named(k Kind) string { return string(k) + "-" + n.Address.Label() }

// VFName is the name of one of the NIC's VFs as a device: "vf-1a-00-3".
func (n *NIC) VFName(v *VF) string { return fmt.Sprintf("%s-%d", n.named(KindVF), v.Index) }

// Bandwidth is what the NIC's links carry together, in bits per second; 0: unknown, as
// it is without a link.
func (n *NIC) Bandwidth() int64 {
	var megabits int64
	for _, d := range n.Netdevs {
		megabits += int64(d.Speed)
	}
	if megabits == 0 && n.RDMA != nil {
		for _, p := range n.RDMA.Ports {
			if p.State == PortActive {
				megabits += 1000 * int64(p.Rate)
			}
		}
	}
	return megabits * 1e6
}

// Speed of the fastest link, in Gb/s; 0: unknown.
func (n *NIC) Speed() int {
	speed := 0
	for _, d := range n.Netdevs {
		speed = max(speed, d.Speed/1000)
	}
	if speed > 0 || n.RDMA == nil {
		return speed
	}
	for _, p := range n.RDMA.Ports {
		if p.State == PortActive {
			speed = max(speed, p.Rate)
		}
	}
	return speed
}

// NIC returns the NIC at an address, nil where there is none. Virtual functions are not
// looked at.
func (m *Machine) NIC(a Address) *NIC {
	for i := range m.NICs {
		if m.NICs[i].Address == a {
			return &m.NICs[i]
		}
	}
	return nil
}

// Rail of a NIC: NICs of one rail, on all nodes, are on one switch. It is the
// administrator's number, and -1 where there are such numbers and the NIC has none;
// otherwise the NIC's place among those that are offered.
func (m *Machine) Rail(nic *NIC) int {
	if len(m.Network.Rails) > 0 {
		if rail, ok := m.Network.Rails[nic.Address]; ok {
			return rail
		}
		return -1
	}
	rail := 0
	for i := range m.NICs {
		switch {
		case !m.NICs[i].Offered():
		case m.NICs[i].Address == nic.Address:
			return rail
		default:
			rail++
		}
	}
	return -1
}

// rails are the addresses that have a number, in the order of the numbers.
func (n *Network) rails() []Address {
	var addresses []Address
	for a := range n.Rails {
		addresses = append(addresses, a)
	}
	slices.SortFunc(addresses, func(a, b Address) int { return n.Rails[a] - n.Rails[b] })
	return addresses
}
