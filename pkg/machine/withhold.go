package machine

import "slices"

// WithholdVFs takes away virtual functions that somebody has made, by hand, of NICs that
// are claims' as one, and says whether there are any.
func (m *Machine) WithholdVFs(held []Held) (some bool) {
	m.NICs = slices.Clone(m.NICs)
	for i := range m.NICs {
		nic := &m.NICs[i]
		isHeld := func(h Held) bool { return h.Kind.HasNIC() && h.Function == nic.Address }
		if len(nic.VFs) > 0 && slices.ContainsFunc(held, isHeld) {
			nic.VFs, some = nil, true
		}
	}
	return some
}

// WithholdInstances likewise withholds partitions that somebody has made, by hand, of GPUs,
// or on memory units, that are claims'.
func (m *Machine) WithholdInstances(held []Held) (some bool) {
	m.GPUs = slices.Clone(m.GPUs)
	for i := range m.GPUs {
		some = m.GPUs[i].withhold(held) || some
	}
	return some
}

func (g *GPU) withhold(held []Held) (some bool) {
	if len(g.MIG.Instances) == 0 {
		return false
	}
	held = slices.DeleteFunc(slices.Clone(held), func(h Held) bool { return h.GPU != g.UUID })
	g.MIG.Instances = slices.Clone(g.MIG.Instances)
	for _, d := range g.partitions() {
		overlaps := func(h Held) bool { return h.Kind != KindMIG || h.Placement.Overlaps(d.Partition.Placement) }
		isHeld := func(h Held) bool { return h.Name == d.Name }
		if d.Static() && slices.ContainsFunc(held, overlaps) && !slices.ContainsFunc(held, isHeld) {
			d.Partition.Instance.Withheld, some = true, true
		}
	}
	return some
}
