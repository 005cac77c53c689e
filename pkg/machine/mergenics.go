package machine

import (
	"cmp"
	"fmt"
	"slices"
)

// keepNICs gives the machine what was known before of its NICs. Where they could not
// be listed they stay as they were.
func (m *Machine) keepNICs(before *Machine) {
	if slices.ContainsFunc(m.Faults, func(f Fault) bool { return f.Device == AllNICs }) {
		m.NICs, m.RDMANodes, m.RDMAExclusive = before.NICs, before.RDMANodes, before.RDMAExclusive
		return
	}
	m.NICs = mergeNICs(before, m)
}

func mergeNICs(before, now *Machine) []NIC {
	merged := slices.Clone(now.NICs)
	for i := range merged {
		known := before.NIC(merged[i].Address)
		switch {
		case known == nil:
		case merged[i].without(known):
			merged[i] = *known
			merged[i].Health = Health{Reason: FaultLost, Message: fmt.Sprintf("NIC %s has lost its RDMA device, as when its driver is loaded anew: "+
				"look for the driver's messages in the kernel's log, and at the card if it does not come back", known.Address)}
		default:
			merged[i] = merged[i].filledFrom(known)
		}
	}
	for _, nic := range before.NICs {
		if now.NIC(nic.Address) != nil || !nic.Offered() {
			continue
		}
		nic.Health = Health{
			Reason:  FaultLost,
			Message: fmt.Sprintf("NIC %s is no longer on the PCI bus: reboot the node, and look at the card if it does not come back", nic.Address),
		}
		for _, f := range now.Faults {
			if f.Device == nic.Address.String() {
				nic.Health = Health{Reason: f.Kind, Message: f.Message}
			}
		}
		merged = append(merged, nic)
	}
	slices.SortStableFunc(merged, func(a, b NIC) int { return a.Address.Compare(b.Address) })
	return merged
}

// without says whether the NIC has lost the RDMA device for which it was offered, and no
// other driver has taken it. If it was no longer dealt out, others' pairs would change under
// their claims.
func (n *NIC) without(known *NIC) bool {
	return known.Offered() && known.RDMA != nil && n.RDMA == nil && !n.Away && (n.Driver == "" || n.Driver == known.Driver)
}

// filledFrom returns the NIC with what was known before of those of its parts that are
// in another network namespace, and of the speed of links that do not tell it now. Its
// health, and which VFs it has, are as it now says.
func (n NIC) filledFrom(known *NIC) NIC {
	n.Netdevs = withSpeeds(n.Netdevs, known.Netdevs)
	if n.Away {
		vfs, health := n.VFs, n.Health
		n = *known
		n.VFs, n.Health, n.Away = vfs, health, true
	}
	n.VFs = slices.Clone(n.VFs)
	for i := range n.VFs {
		n.VFs[i] = n.VFs[i].filledFrom(known)
	}
	return n
}

// withSpeeds gives interfaces that do not tell their speed the one that they had.
func withSpeeds(now, known []Netdev) []Netdev {
	now = slices.Clone(now)
	for i := range now {
		d := &now[i]
		if before := slices.IndexFunc(known, func(k Netdev) bool { return k.MAC == d.MAC }); before >= 0 && d.Speed == 0 {
			d.Speed = known[before].Speed
		}
	}
	return now
}

func (v VF) filledFrom(known *NIC) VF {
	i := slices.IndexFunc(known.VFs, func(other VF) bool { return other.Address == v.Address })
	if !v.Away || i < 0 {
		return v
	}
	withheld := cmp.Or(v.Withheld, known.VFs[i].Withheld)
	v = known.VFs[i]
	v.Away, v.Withheld = true, withheld
	return v
}

// Reread returns the machine with NICs as they have just been read. One that is away, or
// offers other devices than before, stays as it was: devices are dealt out over all NICs,
// which is for the next look.
func (m *Machine) Reread(nics []NIC) *Machine {
	now := *m
	now.NICs = slices.Clone(m.NICs)
	for i := range now.NICs {
		known := &now.NICs[i]
		for _, nic := range nics {
			if nic.Address == known.Address && !nic.Away && nic.offersLike(known) {
				*known = nic.filledFrom(known)
			}
		}
	}
	return &now
}

// offersLike says whether both are offered in the same way.
func (n *NIC) offersLike(known *NIC) bool {
	return n.Offered() == known.Offered() && (n.RDMA == nil) == (known.RDMA == nil) &&
		slices.EqualFunc(n.VFs, known.VFs, func(a, b VF) bool { return a.Address == b.Address && a.Away == b.Away && a.Offered() == b.Offered() })
}

// Reserved is a PCI function that a claim has, and its NIC as it was before.
type Reserved struct {
	Function Address `json:"function"`
	NIC      NIC     `json:"nic"`
}

// Recall fills in what claims have on record of functions that are in another network
// namespace: after a restart nothing else is known of them. A function that is there and
// on no record has been taken by others: a NIC is unhealthy then, and a VF withheld.
// It makes no difference whether Merge comes before or after.
func (m *Machine) Recall(reserved []Reserved) {
	record := func(function Address) *NIC {
		i := slices.IndexFunc(reserved, func(r Reserved) bool { return r.Function == function })
		if i < 0 {
			return nil
		}
		return &reserved[i].NIC
	}
	m.NICs = slices.Clone(m.NICs)
	for i := range m.NICs {
		nic := &m.NICs[i]
		nic.VFs = slices.Clone(nic.VFs)
		for j := range nic.VFs {
			vf := &nic.VFs[j]
			if known := record(vf.Address); known != nil {
				*vf = vf.filledFrom(known)
			} else if vf.Away {
				vf.Withheld = takenAway(vf.Address)
			}
		}
		if known := record(nic.Address); known != nil {
			*nic = nic.filledFrom(known)
		} else if nic.Away && nic.Health.OK() {
			nic.Health = Health{Reason: FaultTaken, Message: "NIC " + takenAway(nic.Address)}
		}
	}
}

func takenAway(function Address) string {
	return fmt.Sprintf("%s is in another network namespace, and no claim has it: have whoever took it give it back", function)
}
