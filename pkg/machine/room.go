package machine

import (
	"cmp"
	"slices"
)

// MaxMemoryUnits is how many memory units of a GPU are shared out; placements
// beyond are left out. Each is a counter of its own, of which the API takes 32 a
// GPU. No GPU has more than 12.
const MaxMemoryUnits = 24

// MIGTotals is what a GPU has in all to make partitions from.
type MIGTotals struct {
	ComputeSlices int
	MemoryUnits   int
	Engines       Engines
	// Media says whether the GPU has profiles with media extensions.
	Media bool
}

// Totals of a GPU, which NVML does not report: the most that instances of one profile
// take together of each thing. The largest profile need not have that much: a B200's has
// one decoder, and so has each of seven small ones. Of a profile there are as many as
// have a place, and no more than the driver says: an RTX PRO 5000 has places for several
// 1g.12gb, but JPEG engines for one (NVIDIA, MIG User Guide v580, "Supported MIG
// Profiles").
func (m *MIG) Totals() MIGTotals {
	var t MIGTotals
	for i := range m.Profiles {
		t.ComputeSlices = max(t.ComputeSlices, m.Profiles[i].ComputeSlices)
		t.Media = t.Media || m.Profiles[i].Media
	}
	for _, at := range m.placements() {
		t.MemoryUnits = max(t.MemoryUnits, at.Start+at.Size)
	}
	for i := range m.Profiles {
		p := &m.Profiles[i]
		n := p.most(t.ComputeSlices)
		if p.MaxInstances > 0 {
			n = min(n, p.MaxInstances)
		}
		t.Engines = t.Engines.orMore(p.Engines.Times(n))
	}
	return t
}

// Left is what the existing instances leave of the totals. MemoryUnits stays the
// number of all: which of them are taken is for Taken to say.
func (m *MIG) Left() MIGTotals {
	all := m.Totals()
	left := all
	for i := range m.Instances {
		instance := &m.Instances[i]
		profile, ok := m.Profile(instance.ProfileID)
		if !ok {
			left.ComputeSlices = max(0, left.ComputeSlices-instance.likelySlices(all.ComputeSlices, all.MemoryUnits))
			continue
		}
		left.ComputeSlices = max(0, left.ComputeSlices-profile.ComputeSlices)
		left.Engines = left.Engines.Minus(profile.Engines)
		left.Media = left.Media && !profile.Media
	}
	return left
}

// Taken says whether an existing instance has that memory unit.
func (m *MIG) Taken(unit int) bool { return m.overlapping(Placement{Start: unit, Size: 1}) != nil }

// Most is how many instances of the profile fit on an empty GPU, by the driver's
// rules; MIGProfile.MaxInstances is what the driver says, which is known to be wrong
// for some models.
func (m *MIG) Most(p *MIGProfile) int {
	all := m.Totals()
	n := p.most(all.ComputeSlices)
	for n > 0 && !p.Engines.Times(n).Within(all.Engines) {
		n--
	}
	return n
}

// most is how many placements and compute slices there are for.
func (p *MIGProfile) most(computeSlices int) int {
	placements := slices.Clone(p.Placements)
	slices.SortFunc(placements, func(a, b Placement) int { return cmp.Compare(a.Start+a.Size, b.Start+b.Size) })
	var most, end int
	for _, at := range placements {
		if at.valid() && at.Start >= end {
			most, end = most+1, at.Start+at.Size
		}
	}
	if p.Media {
		return min(most, 1)
	}
	return min(most, computeSlices/max(1, p.ComputeSlices))
}

// likelySlices of an instance whose profile the driver does not name: what its
// compute instances have, or its share of the memory, rounded up.
func (i *GPUInstance) likelySlices(all, units int) int {
	var used int
	for _, c := range i.ComputeInstances {
		used += c.ComputeSlices
	}
	if units == 0 {
		return used
	}
	return max(used, (all*i.Placement.Size+units-1)/units)
}

func (t MIGTotals) has(p *MIGProfile) bool {
	return p.ComputeSlices <= t.ComputeSlices && (t.Media || !p.Media) && p.Engines.Within(t.Engines)
}

func (m *MIG) overlapping(at Placement) *GPUInstance {
	for i := range m.Instances {
		if m.Instances[i].Placement.Overlaps(at) {
			return &m.Instances[i]
		}
	}
	return nil
}

func (p Placement) valid() bool {
	return p.Start >= 0 && p.Size > 0 && p.Start+p.Size <= MaxMemoryUnits
}
