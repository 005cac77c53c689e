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

// Totals is the most that any profile takes of each thing: the largest profile
// is the whole GPU, but a smaller one can have an engine that it lacks.
func (m *MIG) Totals() MIGTotals {
	var t MIGTotals
	for i := range m.Profiles {
		p := &m.Profiles[i]
		t.ComputeSlices = max(t.ComputeSlices, p.ComputeSlices)
		t.Media = t.Media || p.Media
		t.Engines = Engines{
			Copy:     max(t.Engines.Copy, p.Engines.Copy),
			Decoders: max(t.Engines.Decoders, p.Engines.Decoders),
			Encoders: max(t.Engines.Encoders, p.Engines.Encoders),
			JPEG:     max(t.Engines.JPEG, p.Engines.JPEG),
			OFA:      max(t.Engines.OFA, p.Engines.OFA),
		}
	}
	for _, at := range m.placements() {
		t.MemoryUnits = max(t.MemoryUnits, at.Start+at.Size)
	}
	return t
}

// Left is what the existing instances leave of the totals. MemoryUnits stays the
// number of all: which of them are taken is for Taken to say.
func (m *MIG) Left() MIGTotals {
	left := m.Totals()
	units := left.MemoryUnits
	for i := range m.Instances {
		instance := &m.Instances[i]
		profile, ok := m.Profile(instance.ProfileID)
		if !ok {
			left.ComputeSlices = max(0, left.ComputeSlices-instance.likelySlices(m.Totals().ComputeSlices, units))
			continue
		}
		left.ComputeSlices = max(0, left.ComputeSlices-profile.ComputeSlices)
		left.Engines = left.Engines.minus(profile.Takes())
		left.Media = left.Media && !profile.Media
	}
	return left
}

// Taken says whether an existing instance has that memory unit.
func (m *MIG) Taken(unit int) bool { return m.overlapping(Placement{Start: unit, Size: 1}) != nil }

// Takes is what an instance takes of the GPU's engines for as long as it exists.
// The driver has a rule for media extensions and none for engines, so a profile with
// the former takes those, whatever engines they come to, and copy engines.
func (p *MIGProfile) Takes() Engines {
	if p.Media {
		return Engines{Copy: p.Engines.Copy}
	}
	return p.Engines
}

// Most is how many instances of the profile fit on an empty GPU, by the driver's
// rules; MIGProfile.MaxInstances is what the driver says, which is known to be wrong
// for some models.
func (m *MIG) Most(p *MIGProfile) int {
	if p.Media {
		return min(1, len(p.Placements))
	}
	placements := slices.Clone(p.Placements)
	slices.SortFunc(placements, func(a, b Placement) int { return cmp.Compare(a.Start+a.Size, b.Start+b.Size) })
	var most, end int
	for _, at := range placements {
		if at.valid() && at.Start >= end {
			most, end = most+1, at.Start+at.Size
		}
	}
	return min(most, m.Totals().ComputeSlices/max(1, p.ComputeSlices))
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
	return p.ComputeSlices <= t.ComputeSlices && (t.Media || !p.Media) && p.Takes().within(t.Engines)
}

func (e Engines) minus(taken Engines) Engines {
	return Engines{
		Copy:     max(0, e.Copy-taken.Copy),
		Decoders: max(0, e.Decoders-taken.Decoders),
		Encoders: max(0, e.Encoders-taken.Encoders),
		JPEG:     max(0, e.JPEG-taken.JPEG),
		OFA:      max(0, e.OFA-taken.OFA),
	}
}

func (e Engines) within(most Engines) bool {
	return e.Copy <= most.Copy && e.Decoders <= most.Decoders && e.Encoders <= most.Encoders &&
		e.JPEG <= most.JPEG && e.OFA <= most.OFA
}

func (e Engines) sum() int { return e.Copy + e.Decoders + e.Encoders + e.JPEG + e.OFA }

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
