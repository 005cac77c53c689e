package machine

import "cmp"

// compare orders profiles by size: memory first, then compute slices and engines; the
// name only so that the order is always the same.
func (p *MIGProfile) compare(q *MIGProfile) int {
	return cmp.Or(
		cmp.Compare(p.Memory, q.Memory),
		cmp.Compare(p.ComputeSlices, q.ComputeSlices),
		cmp.Compare(p.Engines.sum(), q.Engines.sum()),
		cmp.Compare(p.Name, q.Name),
	)
}

// Smallest is the smallest profile that has so much memory, in bytes. It is one
// profile also where several have the same memory.
func (m *MIG) Smallest(memory uint64) (*MIGProfile, bool) {
	var smallest *MIGProfile
	for i := range m.Profiles {
		p := &m.Profiles[i]
		if len(p.Placements) > 0 && p.Memory >= memory && (smallest == nil || p.compare(smallest) < 0) {
			smallest = p
		}
	}
	return smallest, smallest != nil
}

// NextSmallerMemory is the memory of the profile before p in the order of size, in
// bytes; 0 where p is the smallest. So p is the smallest profile with a certain memory
// if that is more than this, and not more than p has.
func (m *MIG) NextSmallerMemory(p *MIGProfile) uint64 {
	var before *MIGProfile
	for i := range m.Profiles {
		q := &m.Profiles[i]
		if len(q.Placements) > 0 && q.compare(p) < 0 && (before == nil || q.compare(before) > 0) {
			before = q
		}
	}
	if before == nil {
		return 0
	}
	return before.Memory
}
