package machine

import (
	"cmp"
	"slices"
	"strings"
)

// lanes are how many GPUs are paired with each NIC.
func lanes(pairings []pairing) map[*NIC]int {
	lanes := map[*NIC]int{}
	for _, p := range pairings {
		lanes[p.nic]++
	}
	return lanes
}

// Lanes is into how many parts the NIC is shared out: one for each GPU that is paired
// with it, and one at least.
func (m *Machine) Lanes(nic *NIC) int {
	return max(1, lanes(m.pairings())[m.NIC(nic.Address)])
}

// pairs of whole GPUs. A GPU in MIG mode is in none.
func (m *Machine) pairs(pairings []pairing) []Device {
	lanes := lanes(pairings)
	var devices []Device
	for _, p := range pairings {
		d := Device{
			Name: string(KindPair) + "-" + p.gpu.Address.Label() + "-" + p.nic.Address.Label(),
			Kind: KindPair, GPU: p.gpu, NIC: p.nic, VF: p.vf, Closeness: p.closeness, Lanes: lanes[p.nic],
		}
		if !p.gpu.MIG.Enabled && m.reachable(&d) {
			devices = append(devices, d)
		}
	}
	return devices
}

// nics are the NICs that are handed out whole, or as RDMA devices. Where there are
// virtual functions, the NIC stays with the host.
func (m *Machine) nics(kind Kind, pairings []pairing) []Device {
	lanes := lanes(pairings)
	var devices []Device
	for i := range m.NICs {
		nic := &m.NICs[i]
		d := Device{Name: nic.named(kind), Kind: kind, NIC: nic, Lanes: max(1, lanes[nic])}
		if nic.Offered() && len(nic.VFs) == 0 && m.reachable(&d) {
			devices = append(devices, d)
		}
	}
	return devices
}

// reachable says whether containers could use the device's RDMA device, which stays with
// the host where the interfaces do.
func (m *Machine) reachable(d *Device) bool { return d.Moves() || !m.RDMAExclusive }

// vfs are the virtual functions: first those that no pair needs, and of each NIC the
// last first, so that those of the first lanes are left the longest.
func (m *Machine) vfs(pairings []pairing) []Device {
	lanes := lanes(pairings)
	needed := map[*VF]bool{}
	for _, p := range pairings {
		needed[p.vf] = true
	}
	var devices []Device
	for i := range m.NICs {
		nic := &m.NICs[i]
		if !nic.Offered() {
			continue
		}
		for _, vf := range slices.Backward(nic.offeredVFs()) {
			devices = append(devices, Device{Name: nic.VFName(vf), Kind: KindVF, NIC: nic, VF: vf, Lanes: max(1, lanes[nic])})
		}
	}
	slices.SortStableFunc(devices, func(a, b Device) int { return cmp.Compare(later(needed[a.VF]), later(needed[b.VF])) })
	return devices
}

func later(b bool) int {
	if b {
		return 1
	}
	return 0
}

// networkDevices lists those of one kind.
func (m *Machine) networkDevices(kind Kind) []Device {
	pairings := m.pairings()
	if kind == KindPair {
		return m.pairs(pairings)
	}
	if kind == KindVF {
		return m.vfs(pairings)
	}
	return m.nics(kind, pairings)
}

// networkDevice returns the device with a NIC that has that name.
func (m *Machine) networkDevice(name string) (Device, bool) {
	for _, kind := range Kinds {
		if !kind.HasNIC() || !strings.HasPrefix(name, string(kind)+"-") {
			continue
		}
		devices := m.networkDevices(kind)
		if i := slices.IndexFunc(devices, func(d Device) bool { return d.Name == name }); i >= 0 {
			return devices[i], true
		}
	}
	return Device{}, false
}

// Moves says whether the device's interfaces go into the Pod that has it, unless its
// configuration or the Pod's own says otherwise: nobody else has a part of them.
func (d *Device) Moves() bool {
	whole := d.VF != nil || d.Kind == KindPair && d.Lanes == 1
	return whole || d.Kind == KindNIC
}

// Function is the address of the PCI function that is handed out of the NIC: the VF's,
// where there is one.
func (d *Device) Function() Address {
	switch {
	case d.VF != nil:
		return d.VF.Address
	case d.NIC != nil:
		return d.NIC.Address
	}
	return Address{}
}

// Netdevs are that function's interfaces.
func (d *Device) Netdevs() []Netdev {
	switch {
	case d.VF != nil:
		return d.VF.Netdevs
	case d.NIC != nil:
		return d.NIC.Netdevs
	}
	return nil
}

// RDMA is that function's RDMA device; nil for a device without NIC.
func (d *Device) RDMA() *RDMADevice {
	switch {
	case d.VF != nil:
		return d.VF.RDMA
	case d.NIC != nil:
		return d.NIC.RDMA
	}
	return nil
}
