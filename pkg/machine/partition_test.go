package machine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// profiles of a small GPU: 4 compute slices, 4 memory units.
func profiles() []MIGProfile {
	return []MIGProfile{
		{ID: 14, Name: "1g.6gb", ComputeSlices: 1, Memory: 6, Engines: Engines{Copy: 1}, Placements: []Placement{{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
		{ID: 21, Name: "1g.6gb+me", ComputeSlices: 1, Memory: 6, Engines: Engines{Copy: 1, Decoders: 1, JPEG: 1}, Media: true, Placements: []Placement{{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
		{ID: 5, Name: "2g.12gb", ComputeSlices: 2, Memory: 12, Engines: Engines{Copy: 2, Decoders: 2}, Placements: []Placement{{0, 2}, {2, 2}}},
		{ID: 0, Name: "4g.24gb", ComputeSlices: 4, Memory: 24, Engines: Engines{Copy: 4, Decoders: 4, JPEG: 1}, Placements: []Placement{{0, 4}}},
	}
}

func cut(bus uint8, instances ...GPUInstance) GPU {
	return GPU{UUID: fmt.Sprint("GPU-", bus), Address: Address{Bus: bus}, MIG: MIG{Capable: true, Enabled: true, Profiles: profiles(), Instances: instances}}
}

func instance(id, profile int, at Placement, slices ...int) GPUInstance {
	made := GPUInstance{ID: id, ProfileID: profile, Placement: at}
	for i, n := range slices {
		made.ComputeInstances = append(made.ComputeInstances, ComputeInstance{ID: i, ComputeSlices: n, UUID: fmt.Sprint("MIG-", id, i)})
	}
	return made
}

func offered(gpus ...GPU) []string {
	m := Machine{GPUs: gpus}
	var names []string
	for _, d := range m.Devices() {
		if d.Kind == KindMIG {
			name := d.Name
			if d.Partition.Static() {
				name += " static"
			}
			names = append(names, name)
		}
	}
	return names
}

func TestPartitions(t *testing.T) {
	needsReset, onDemand := cut(1), cut(1)
	needsReset.MIG.Enabled, onDemand.MIG.Enabled, onDemand.MIG.OnDemand = false, false, true
	ones := []string{"mig-01-00-1g6gb-0", "mig-01-00-1g6gb-1", "mig-01-00-1g6gb-2", "mig-01-00-1g6gb-3"}
	media := []string{"mig-01-00-1g6gbme-0", "mig-01-00-1g6gbme-1", "mig-01-00-1g6gbme-2", "mig-01-00-1g6gbme-3"}
	all := slices.Concat(ones, media, []string{"mig-01-00-2g12gb-0", "mig-01-00-2g12gb-2", "mig-01-00-4g24gb-0"})
	for name, test := range map[string]struct {
		gpu  GPU
		want []string
	}{
		"none exists":       {cut(1), all},
		"mode needs reset":  {needsReset, nil},
		"mode at once":      {onDemand, all},
		"one is there":      {cut(1, instance(3, 5, Placement{0, 2}, 2)), []string{ones[2], ones[3], media[2], media[3], "mig-01-00-2g12gb-0 static", "mig-01-00-2g12gb-2"}},
		"media is taken":    {cut(1, instance(3, 21, Placement{0, 1}, 1)), []string{ones[1], ones[2], ones[3], media[0] + " static", "mig-01-00-2g12gb-2"}},
		"without compute":   {cut(1, instance(3, 5, Placement{0, 2})), []string{ones[2], ones[3], media[2], media[3], "mig-01-00-2g12gb-2"}},
		"two compute":       {cut(1, instance(3, 5, Placement{0, 2}, 1, 1)), []string{ones[2], ones[3], media[2], media[3], "mig-01-00-2g12gb-2"}},
		"a part of compute": {cut(1, instance(3, 5, Placement{0, 2}, 1)), []string{ones[2], ones[3], media[2], media[3], "mig-01-00-2g12gb-2"}},
		// Three units of four: that is three slices, as far as anybody can tell.
		"unknown profile": {cut(1, instance(3, 99, Placement{0, 3}, 1)), []string{ones[3], media[3]}},
		"slices run out":  {cut(1, instance(3, 99, Placement{0, 1}, 4)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := offered(test.gpu); !slices.Equal(got, test.want) {
				t.Errorf("offered:\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func TestWhatCostsLeastComesFirst(t *testing.T) {
	whole := cut(1)
	whole.MIG.Enabled, whole.MIG.OnDemand = false, true
	got := offered(whole, cut(2), cut(3, instance(1, 5, Placement{2, 2}, 2)))
	got = slices.DeleteFunc(got, func(name string) bool { return !strings.Contains(name, "2g12gb") })
	want := []string{"mig-03-00-2g12gb-2 static", "mig-02-00-2g12gb-0", "mig-02-00-2g12gb-2", "mig-03-00-2g12gb-0", "mig-01-00-2g12gb-0", "mig-01-00-2g12gb-2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestLeft(t *testing.T) {
	gpu := cut(1, instance(1, 21, Placement{0, 1}, 1), instance(2, 5, Placement{2, 2}, 2))
	if got, want := gpu.MIG.Left(), (MIGTotals{ComputeSlices: 1, MemoryUnits: 4, Engines: Engines{Copy: 1, Decoders: 1}}); got != want {
		t.Errorf("left: %+v", got)
	}
	for unit, taken := range []bool{true, false, true, true} {
		if gpu.MIG.Taken(unit) != taken {
			t.Errorf("unit %d: taken %v", unit, !taken)
		}
	}
}

func TestUnusableInstancesAreFaults(t *testing.T) {
	lost := Fault{Device: "0000:09:00.0", Kind: FaultLost}
	m := Machine{Faults: []Fault{lost}, GPUs: []GPU{
		cut(1, instance(3, 5, Placement{0, 2}, 2)),
		cut(2, instance(1, 14, Placement{0, 1}), instance(2, 5, Placement{2, 2}, 1, 1)),
		cut(3, instance(7, 99, Placement{0, 2}, 2), instance(4, 5, Placement{2, 2}, 1)),
	}}
	faults := m.AllFaults()
	if len(faults) != 3 || faults[0] != lost || len(m.Faults) != 1 {
		t.Fatalf("faults: %+v", faults)
	}
	for i, words := range [][]string{
		{"GPU instance 1 (memory units 0 to 0) of profile 1g.6gb has no compute instance; ", "GPU instance 2 (memory units 2 to 3) of profile 2g.12gb has 2 compute instances"},
		{"GPU instance 7 (memory units 0 to 1) has profile 99", "a compute instance with 1 of its 2 slices"},
	} {
		f := faults[i+1]
		for _, w := range append(words, "nvidia-smi mig -i "+f.Device) {
			if f.Kind != FaultInstanceUnusable || !strings.Contains(f.Message, w) {
				t.Errorf("fault %+v has no %q", f, w)
			}
		}
	}
	if !m.GPUs[1].Health.OK() {
		t.Error("the GPU is not well")
	}
}

// One odd profile, or placement, never costs the others their place.
func TestOddProfiles(t *testing.T) {
	gpu := cut(1)
	long := strings.Repeat("long.", 30)
	gpu.MIG.Profiles = append(gpu.MIG.Profiles,
		MIGProfile{ID: 30, Name: "1g.6gb.", ComputeSlices: 1, Placements: []Placement{{0, 1}, {0, 2}}},
		MIGProfile{ID: 31, Name: "…", Placements: []Placement{{-1, 1}, {0, 0}, {0, 99}, {3, 1}}},
		MIGProfile{ID: 32, Name: long, Placements: []Placement{{0, 1}}}, MIGProfile{ID: 33, Name: long + "x", Placements: []Placement{{0, 1}}},
		MIGProfile{ID: 34, Name: "-0-me", Placements: []Placement{{1, 1}}},
	)
	got := offered(gpu)
	for _, want := range []string{"mig-01-00-1g6gbx2-0", "mig-01-00-profile-3", "mig-01-00-" + strings.Repeat("long", 6) + "-0", "mig-01-00-" + strings.Repeat("long", 6) + "x2-0", "mig-01-00-0me-1"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not offered: %q", want, got)
		}
	}
	if len(got) != len(offered(cut(1)))+5 {
		t.Errorf("offered: %q", got)
	}
}

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func FuzzPartitionNames(f *testing.F) {
	f.Add("1g.10gb+me.all", "1g.10gb+me", uint32(0), uint8(0))
	f.Add("0-me", "", uint32(0xffffffff), uint8(7))
	f.Fuzz(func(t *testing.T, a, b string, domain uint32, function uint8) {
		gpu := cut(1)
		gpu.Address.Domain = domain
		sibling := cut(1)
		sibling.Address = gpu.Address
		sibling.Address.Function = 1 + function%7
		for i, name := range []string{a, b, a, "1g.6gb"} {
			gpu.MIG.Profiles = append(gpu.MIG.Profiles, MIGProfile{ID: 40 + i, Name: name, Placements: []Placement{{0, 1}, {1, 1}}})
		}
		sibling.MIG = gpu.MIG
		m := Machine{GPUs: []GPU{gpu, sibling}}
		seen := map[string]bool{}
		for _, d := range m.Devices() {
			if seen[d.Name] || !label.MatchString(d.Name) {
				t.Errorf("name %q of profiles %q and %q", d.Name, a, b)
			}
			seen[d.Name] = true
		}
		if len(seen) != 2*(11+8+1) {
			t.Errorf("%d devices", len(seen))
		}
	})
}

func TestRanks(t *testing.T) {
	seven := MIG{Profiles: []MIGProfile{
		{Placements: []Placement{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}},
		{Placements: []Placement{{0, 2}, {2, 2}, {4, 2}, {6, 2}}}, {Placements: []Placement{{0, 2}, {2, 2}, {4, 2}}},
		{Placements: []Placement{{0, 4}, {4, 4}}}, {Placements: []Placement{{0, 4}}}, {Placements: []Placement{{0, 8}}},
	}}
	for i, want := range [][]int{{0, 1, 2, 3, 4, 5, 6}, {0, 2, 6, 4}, {0, 2, 4}, {4, 0}, {0}, {0}} {
		placements := slices.Clone(seven.Profiles[i].Placements)
		slices.SortFunc(placements, func(a, b Placement) int {
			return rankOf(a, seven.placements()).compare(rankOf(b, seven.placements()))
		})
		var got []int
		for _, at := range placements {
			got = append(got, at.Start)
		}
		if !slices.Equal(got, want) {
			t.Errorf("placements of size %d: %v, want %v", placements[0].Size, got, want)
		}
	}
	// With unit 7 of no use without it, 6 comes last.
	if r := rankOf(Placement{6, 1}, seven.placements()); r.stranded != 1 || r.half != 1 {
		t.Errorf("6: %+v", r)
	}
}
