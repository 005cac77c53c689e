package machine

import (
	"cmp"
	"slices"
)

// partitions of all GPUs, the small before the large, so that who asks for "at
// least so much" gets the smallest that has it. Of one profile those come first
// that take the least from others; then one GPU is filled before the next is opened,
// by the ranks of its placements.
func (m *Machine) partitions() []Device {
	var devices []Device
	ranks := map[*Partition]rank{}
	for i := range m.GPUs {
		gpu := &m.GPUs[i]
		all := gpu.MIG.placements()
		for _, d := range gpu.partitions() {
			ranks[d.Partition] = rankOf(d.Partition.Placement, all)
			devices = append(devices, d)
		}
	}
	slices.SortStableFunc(devices, func(a, b Device) int {
		p, q := a.Partition, b.Partition
		return cmp.Or(
			p.Profile.compare(q.Profile),
			cmp.Compare(price(&a), price(&b)),
			a.GPU.Address.Compare(b.GPU.Address),
			ranks[p].compare(ranks[q]),
		)
	})
	return devices
}

// price orders partitions by what is lost with them: nothing where it is there
// already, some of a GPU that is for partitions alone, or a whole GPU.
func price(d *Device) int {
	switch {
	case d.Partition.Static():
		return 0
	case d.GPU.MIG.Enabled:
		return 1
	}
	return 2
}

// rank says how late a placement is taken among those of its profile. No order
// serves every combination of partitions best. This one satisfies as many requests
// as placements from the start up do, in whatever order they arrive, and often more:
// docs/packing.md has the proof by trying all.
type rank struct {
	// half of the GPU in which it lies: the first is filled before the second, so
	// that one of them stays whole. 0 for what is as large as a half.
	half int
	// stranded memory units are of no use to anybody while it is taken.
	stranded int
	// blocked are placements, of all profiles, that overlap it.
	blocked int
	start   int
}

func (r rank) compare(other rank) int {
	return cmp.Or(
		cmp.Compare(r.half, other.half),
		cmp.Compare(r.stranded, other.stranded),
		cmp.Compare(r.blocked, other.blocked),
		cmp.Compare(r.start, other.start),
	)
}

// rankOf a placement among all that the GPU has.
func rankOf(at Placement, all []Placement) rank {
	r := rank{start: at.Start}
	var units int
	useful := make([]bool, MaxMemoryUnits)
	for _, other := range all {
		units = max(units, other.Start+other.Size)
		if at.Overlaps(other) {
			r.blocked++
			continue
		}
		for unit := other.Start; unit < other.Start+other.Size; unit++ {
			useful[unit] = true
		}
	}
	for unit := range units {
		if !useful[unit] && !at.Overlaps(Placement{Start: unit, Size: 1}) {
			r.stranded++
		}
	}
	if 2*at.Size < units {
		r.half = 2 * at.Start / units
	}
	return r
}

// placements of all profiles.
func (m *MIG) placements() []Placement {
	var all []Placement
	for i := range m.Profiles {
		for _, at := range m.Profiles[i].Placements {
			if at.valid() {
				all = append(all, at)
			}
		}
	}
	return all
}
