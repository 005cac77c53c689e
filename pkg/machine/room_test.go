package machine

import (
	"slices"
	"testing"
)

// Engines and instances as NVIDIA's MIG user guide (v580) has them. Where an RTX PRO
// 5000's profiles can lie is a guess.
var (
	b200 = MIG{Profiles: []MIGProfile{
		{Name: "1g.23gb", ComputeSlices: 1, MaxInstances: 7, Engines: Engines{Copy: 2, Decoders: 1, JPEG: 1}, Placements: starts(1, 0, 1, 2, 3, 4, 5, 6)},
		{Name: "3g.90gb", ComputeSlices: 3, MaxInstances: 2, Engines: Engines{Copy: 6, Decoders: 1, JPEG: 1}, Placements: starts(4, 0, 4)},
		{Name: "7g.180gb", ComputeSlices: 7, MaxInstances: 1, Engines: Engines{Copy: 16, Decoders: 1, JPEG: 1, OFA: 1}, Placements: starts(8, 0)},
		{Name: "1g.23gb+me", ComputeSlices: 1, MaxInstances: 1, Media: true, Engines: Engines{Copy: 2, Decoders: 1, JPEG: 1, OFA: 1}, Placements: starts(1, 0, 1, 2, 3, 4, 5, 6)},
	}}
	rtxPro5000 = MIG{Profiles: []MIGProfile{
		{Name: "1g.12gb", ComputeSlices: 1, MaxInstances: 1, Engines: Engines{Copy: 1, Decoders: 1, Encoders: 1, JPEG: 1}, Placements: starts(3, 0, 3, 6)},
		{Name: "1g.12gb-me", ComputeSlices: 1, MaxInstances: 3, Engines: Engines{Copy: 1}, Placements: starts(3, 0, 3, 6)},
		{Name: "4g.48gb", ComputeSlices: 4, MaxInstances: 1, Engines: Engines{Copy: 4, Decoders: 3, Encoders: 3, JPEG: 1, OFA: 1}, Placements: starts(12, 0)},
	}}
	rtxPro6000 = MIG{Enabled: true, Profiles: []MIGProfile{
		{ID: 14, Name: "1g.24gb", ComputeSlices: 1, MaxInstances: 4, Engines: Engines{Copy: 1, Decoders: 1, Encoders: 1, JPEG: 1}, Placements: starts(3, 0, 3, 6, 9)},
		{ID: 0, Name: "4g.96gb", ComputeSlices: 4, MaxInstances: 1, Engines: Engines{Copy: 4, Decoders: 4, Encoders: 4, JPEG: 4, OFA: 1}, Placements: starts(12, 0)},
		{ID: 67, Name: "1g.24gb-me", ComputeSlices: 1, MaxInstances: 4, Engines: Engines{Copy: 1}, Placements: starts(3, 0, 3, 6, 9)},
		{ID: 65, Name: "1g.24gb+me.all", ComputeSlices: 1, MaxInstances: 1, Media: true, Engines: Engines{Copy: 1, Decoders: 4, Encoders: 4, JPEG: 4, OFA: 1}, Placements: starts(3, 0, 3, 6, 9)},
	}}
)

func starts(size int, at ...int) []Placement {
	var all []Placement
	for _, start := range at {
		all = append(all, Placement{start, size})
	}
	return all
}

func TestTotals(t *testing.T) {
	for name, test := range map[string]struct {
		of   MIG
		want MIGTotals
		most []int
	}{
		"B200":             {b200, MIGTotals{7, 8, Engines{Copy: 16, Decoders: 7, JPEG: 7, OFA: 1}, true}, []int{7, 2, 1, 1}},
		"no counts":        {counted(b200, 0), MIGTotals{7, 8, Engines{Copy: 16, Decoders: 7, JPEG: 7, OFA: 1}, true}, []int{7, 2, 1, 1}},
		"counts too high":  {counted(b200, 99), MIGTotals{7, 8, Engines{Copy: 16, Decoders: 7, JPEG: 7, OFA: 1}, true}, []int{7, 2, 1, 1}},
		"RTX PRO 5000":     {rtxPro5000, MIGTotals{4, 12, Engines{Copy: 4, Decoders: 3, Encoders: 3, JPEG: 1, OFA: 1}, false}, []int{1, 3, 1}},
		"RTX PRO 6000":     {rtxPro6000, MIGTotals{4, 12, Engines{Copy: 4, Decoders: 4, Encoders: 4, JPEG: 4, OFA: 1}, true}, []int{4, 1, 4, 1}},
		"without profiles": {MIG{}, MIGTotals{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.of.Totals(); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			var most []int
			for i := range test.of.Profiles {
				most = append(most, test.of.Most(&test.of.Profiles[i]))
			}
			if !slices.Equal(most, test.most) {
				t.Errorf("of the profiles fit %v, want %v", most, test.most)
			}
		})
	}
}

// counted is the same where the driver counts otherwise.
func counted(m MIG, instances int) MIG {
	m.Profiles = slices.Clone(m.Profiles)
	for i := range m.Profiles {
		m.Profiles[i].MaxInstances = instances
	}
	return m
}

// TestAllMedia: beside an instance that has all media engines fits what needs none.
func TestAllMedia(t *testing.T) {
	gpu := GPU{Address: Address{Bus: 1}, MIG: rtxPro6000}
	gpu.MIG.Instances = []GPUInstance{instance(3, 65, Placement{3, 3}, 1)}
	want := []string{"mig-01-00-1g24gb-me-0", "mig-01-00-1g24gb-me-6", "mig-01-00-1g24gb-me-9", "mig-01-00-1g24gbmeall-3 static"}
	if got := offered(gpu); !slices.Equal(got, want) {
		t.Errorf("offered: %q, want %q", got, want)
	}
}
