package machine

import "slices"

// Held is a device that a claim has, as it is on record.
type Held struct {
	// Name and kind of the device.
	Name string
	Kind Kind
	// GPU is its UUID; empty: it has none.
	GPU string
	// Function is the NIC's or the VF's; zero: it has none.
	Function Address
	// Alone: no other claim may have a part of that function, however it is shared out now.
	Alone bool
}

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
			gpu = &GPU{UUID: h.GPU, Health: Health{Reason: FaultLost, Message: "GPU " + h.GPU + " of " + h.Name + " is not there any more"}}
		}
		d.GPU, left = gpu, there
	}
	if h.Kind == KindMIG {
		d.Partition = &Partition{Profile: &MIGProfile{}}
	}
	if h.Kind.HasNIC() {
		nic, vf := m.function(h.Function)
		left = left || nic != nil && nic.Offered()
		if nic == nil {
			nic = &NIC{Address: h.Function, Health: Health{Reason: FaultLost, Message: "NIC " + h.Function.String() + " of " + h.Name + " is not there any more"}}
		}
		d.NIC, d.VF, d.Lanes = nic, vf, m.Lanes(nic)
	}
	if h.Kind == KindPair {
		d.Closeness = d.GPU.Location.Closeness(&d.NIC.Location)
	}
	return d, left
}

// function is the NIC with that PCI function, and the VF that it is of the NIC; nil where
// there is none.
func (m *Machine) function(a Address) (*NIC, *VF) {
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
