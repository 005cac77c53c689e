package machine

import "slices"

// Held is a device that a claim has, as it is on record.
type Held struct {
	// Name and kind of the device.
	Name string
	Kind Kind
	// GPU is its UUID; empty: it has none.
	GPU string
	// Placement of a partition on the GPU; zero: it is none.
	Placement Placement
	// Function is the NIC's or the VF's; zero: it has none. NIC is the NIC's in both cases.
	Function, NIC Address
	// Alone: no other claim may have a part of that function, however it is shared out now.
	Alone bool
}

// Is says whether the device of that name is still what is held: a pair has another VF
// where GPUs are dealt NICs anew, or the NIC itself where its VFs are gone.
func (h *Held) Is(d *Device) bool { return !h.Kind.HasNIC() || d.Function() == h.Function }

// Remnant is what there is of a held device that the machine does not offer, as when the
// GPU of a pair is gone. Of a part that is not there nothing is known but that it is lost.
// False where nothing of it is left that others could be given.
func (m *Machine) Remnant(h Held) (Device, bool) {
	if !slices.Contains(Kinds, h.Kind) {
		return Device{}, false
	}
	d, left := Device{Name: h.Name, Kind: h.Kind}, false
	if h.Kind.HasGPU() {
		gpu, there := m.GPU(h.GPU)
		if !there {
			gpu = &GPU{UUID: h.GPU, Location: Location{NUMANode: -1}, Health: h.lost("GPU " + h.GPU)}
		}
		d.GPU, left = gpu, there
	}
	if h.Kind == KindMIG {
		d.Partition = &Partition{Profile: &MIGProfile{}, Placement: h.Placement}
	}
	if h.Kind.HasNIC() {
		d.NIC, d.VF = m.nicOf(h)
		left = left || d.NIC.Offered()
		d.Lanes = m.Lanes(d.NIC)
	}
	if h.Kind == KindPair && d.GPU.Health.Reason != FaultLost && d.NIC.Health.Reason != FaultLost {
		d.Closeness = d.GPU.Location.Closeness(&d.NIC.Location)
	}
	return d, left
}

// nicOf finds the NIC, and the VF, of what is held. Whose VF was removed with all others
// of the NIC has the NIC in place of it: both at once nobody can be given.
func (m *Machine) nicOf(h Held) (*NIC, *VF) {
	if nic, vf := m.Function(h.Function); nic != nil {
		return nic, vf
	}
	health := h.lost("NIC " + h.Function.String())
	if known := m.NIC(h.NIC); known != nil && len(known.VFs) == 0 {
		nic := *known
		nic.Health = health
		return &nic, &VF{Address: h.Function}
	}
	return &NIC{Address: h.Function, Location: Location{NUMANode: -1}, Health: health}, nil
}

func (h *Held) lost(what string) Health {
	return Health{Reason: FaultLost, Message: what + " of " + h.Name + " is not there any more"}
}

// Function is the NIC with that PCI function, and the VF that it is of the NIC; nil where
// there is none.
func (m *Machine) Function(a Address) (*NIC, *VF) {
	for i := range m.NICs {
		nic := &m.NICs[i]
		if nic.Address == a {
			return nic, nil
		}
		for j := range nic.VFs {
			if nic.VFs[j].Address == a {
				return nic, &nic.VFs[j]
			}
		}
	}
	return nil, nil
}
