package machine

import "testing"

// An H100 with 80 GB, in short: of profiles with the same memory one is the smallest.
var sizesOfH100 = MIG{Profiles: []MIGProfile{
	{Name: "1g.10gb", Memory: 9856, ComputeSlices: 1, Engines: Engines{Copy: 1}, Placements: make([]Placement, 1)},
	{Name: "1g.10gb+me", Memory: 9856, ComputeSlices: 1, Engines: Engines{Copy: 1, OFA: 1}, Placements: make([]Placement, 1)},
	{Name: "2g.20gb", Memory: 19968, ComputeSlices: 2, Placements: make([]Placement, 1)},
	{Name: "1g.20gb", Memory: 19968, ComputeSlices: 1, Placements: make([]Placement, 1)},
	{Name: "7g.80gb", Memory: 80896, ComputeSlices: 7, Placements: make([]Placement, 1)},
	{Name: "1g.5gb", Memory: 4864, ComputeSlices: 1}, // it has no place
}}

func TestSmallestProfile(t *testing.T) {
	for _, test := range []struct {
		memory uint64
		want   string
	}{
		{0, "1g.10gb"}, {1, "1g.10gb"}, {4864, "1g.10gb"}, {9856, "1g.10gb"}, {9857, "1g.20gb"},
		{19968, "1g.20gb"}, {19969, "7g.80gb"}, {80896, "7g.80gb"}, {80897, ""},
	} {
		var got string
		if p, ok := sizesOfH100.Smallest(test.memory); ok {
			got = p.Name
		}
		if got != test.want {
			t.Errorf("%d: %q, want %q", test.memory, got, test.want)
		}
	}
}

// What is published says the same as the machine: of each amount of memory the profile
// between its own memory and the next smaller one's.
func TestNextSmallerMemory(t *testing.T) {
	for memory := uint64(1); memory < 81000; memory++ {
		smallest, ok := sizesOfH100.Smallest(memory)
		for i := range sizesOfH100.Profiles {
			p := &sizesOfH100.Profiles[i]
			if len(p.Placements) == 0 {
				continue
			}
			selected := sizesOfH100.NextSmallerMemory(p) < memory && memory <= p.Memory
			if selected != (ok && p == smallest) {
				t.Fatalf("%d: %s is selected: %t", memory, p.Name, selected)
			}
		}
	}
}
