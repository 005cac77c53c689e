package simulator

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// gpuOf is a GPU in MIG mode, of no machine.
func gpuOf(m *model.Model, instances ...machine.GPUInstance) GPU {
	return GPU{
		Spec: &GPUSpec{UUID: "GPU-00000000-0000-4000-8000-000000000000"}, Model: m,
		GPUState: &GPUState{MIGEnabled: true, Instances: slices.Clone(instances)},
	}
}

// candidate is one thing that could be made.
type candidate struct {
	profile *model.Profile
	at      machine.Placement
}

// allowed is what the driver's rules come to, said in another way than the simulator
// says it: units and engines are counted one by one.
func allowed(m *model.MIG, set []candidate) bool {
	used := make([]int, m.MemoryUnits)
	slicesUsed, media := 0, 0
	for _, c := range set {
		for unit := range used {
			if unit >= c.at.Start && unit < c.at.Start+c.at.Size {
				used[unit]++
			}
		}
		slicesUsed += c.profile.ComputeSlices
		if strings.Contains(c.profile.Name, "+me") {
			media++
		}
	}
	return slices.Max(used) <= 1 && slicesUsed <= m.Slices && media <= 1 && !slices.ContainsFunc(engines, func(of func(machine.Engines) int) bool {
		taken := 0
		for _, c := range set {
			taken += of(c.profile.Engines)
		}
		return taken > of(m.Engines)
	})
}

// engines of each kind.
var engines = []func(machine.Engines) int{
	func(e machine.Engines) int { return e.Copy },
	func(e machine.Engines) int { return e.Decoders },
	func(e machine.Engines) int { return e.Encoders },
	func(e machine.Engines) int { return e.JPEG },
	func(e machine.Engines) int { return e.OFA },
}

// tight is a model of which compute slices run out before memory units do, and
// decoders before either.
func tight() *model.Model {
	at := func(size int, starts ...int) (all []machine.Placement) {
		for _, start := range starts {
			all = append(all, machine.Placement{Start: start, Size: size})
		}
		return all
	}
	return &model.Model{Name: "tight", MIG: &model.MIG{Slices: 3, MemoryUnits: 4, Engines: machine.Engines{Decoders: 2}, Profiles: []model.Profile{
		{MIGProfile: machine.MIGProfile{ID: 1, Name: "1g", ComputeSlices: 1, Engines: machine.Engines{Decoders: 1}, Placements: at(1, 0, 1, 2, 3)}},
		{MIGProfile: machine.MIGProfile{ID: 2, Name: "2g", ComputeSlices: 2, Placements: at(2, 0, 2)}},
	}}}
}

func TestEverySet(t *testing.T) {
	models := []*model.Model{tight()}
	for _, name := range model.Names() {
		if m, _ := model.Lookup(name); m.MIG != nil {
			models = append(models, m)
		}
	}
	for _, m := range models {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			var all []candidate
			for i := range m.MIG.Profiles {
				for _, at := range m.MIG.Profiles[i].Placements {
					all = append(all, candidate{&m.MIG.Profiles[i], at})
				}
			}
			s := search{t: t, model: m, all: all, seen: map[string]bool{}}
			s.visit(nil, gpuOf(m))
			t.Logf("%d sets", len(s.seen))
		})
	}
}

// search visits every set that can be made, once.
type search struct {
	t     *testing.T
	model *model.Model
	all   []candidate
	seen  map[string]bool
}

func (s *search) visit(set []candidate, g GPU) {
	key := ""
	for _, in := range g.Instances {
		key += fmt.Sprint(in.ProfileID, in.Placement, " ")
	}
	if s.seen[key] {
		return
	}
	s.seen[key] = true
	s.checkRemaining(g)
	for _, c := range s.all {
		next := append(slices.Clone(set), c)
		made := gpuOf(s.model, g.Instances...)
		_, err := made.makeGPUInstance(c.profile.ID, &c.at)
		if want := allowed(s.model.MIG, next); (err == nil) != want || err != nil && !errors.Is(err, failure.Conflict) {
			s.t.Fatalf("with %s: %s at %+v: %v, allowed %t", key, c.profile.Name, c.at, err, want)
		}
		if err == nil {
			s.visit(next, made)
		}
	}
}

// checkRemaining: as many can be made as remain.
func (s *search) checkRemaining(g GPU) {
	for i := range s.model.MIG.Profiles {
		id := s.model.MIG.Profiles[i].ID
		filled := gpuOf(s.model, g.Instances...)
		n := 0
		for {
			if _, err := filled.makeGPUInstance(id, nil); err != nil {
				break
			}
			n++
		}
		if got := g.Remaining(id); got != n || (len(g.FreePlacements(id)) > 0) != (n > 0) {
			s.t.Fatalf("with %+v: %d of profile %d remain, but %d can be made", g.Instances, got, id, n)
		}
	}
}

// TestKnownSets has sets from NVIDIA's MIG user guide, and some that are none.
func TestKnownSets(t *testing.T) {
	for _, c := range []struct {
		model, set string
		can        bool
	}{
		{"h100-sxm5-80gb", "1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb", true},
		{"h100-sxm5-80gb", "1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb", false},
		{"h100-sxm5-80gb", "3g.40gb 4g.40gb", true},
		{"h100-sxm5-80gb", "4g.40gb 4g.40gb", false},
		{"h100-sxm5-80gb", "3g.40gb 3g.40gb", true},
		{"h100-sxm5-80gb", "3g.40gb 3g.40gb 1g.10gb", false}, // a slice is left, and no memory
		{"h100-sxm5-80gb", "1g.20gb 1g.20gb 1g.20gb 1g.20gb", true},
		{"h100-sxm5-80gb", "1g.10gb+me 1g.10gb", true},
		{"h100-sxm5-80gb", "1g.10gb+me 1g.10gb+me", false},
		{"h100-nvl-94gb", "4g.47gb 2g.24gb 1g.12gb", true},
		{"a30", "2g.12gb 1g.6gb 1g.6gb", true},
		{"a30", "2g.12gb 2g.12gb 1g.6gb", false},
		{"rtx-pro-6000", "1g.24gb+me.all 1g.24gb-me 2g.48gb-me", true},
		{"rtx-pro-6000", "1g.24gb+me.all 1g.24gb+me", false},
		{"rtx-pro-6000", "1g.24gb+me.all 1g.24gb", false}, // it has all decoders
		{"rtx-pro-6000", "2g.48gb+gfx 1g.24gb+me.all", false},
		{"rtx-pro-6000", "1g.24gb+me 1g.24gb 2g.48gb", true},
		{"b200", "1g.23gb+me 1g.23gb 1g.23gb 1g.23gb 1g.23gb 1g.23gb 1g.23gb", true},
		{"b200", "3g.90gb 4g.90gb", true},
		{"b200", "7g.180gb", true},
		{"rtx-pro-6000", "1g.24gb+gfx 1g.24gb+gfx 2g.48gb+gfx", true},
		{"rtx-pro-6000", "4g.96gb 1g.24gb", false},
	} {
		m, err := model.Lookup(c.model)
		if err != nil {
			t.Fatal(err)
		}
		g := gpuOf(m)
		for name := range strings.FieldsSeq(c.set) {
			if _, err = g.makePartition(name, nil); err != nil {
				break
			}
		}
		if (err == nil) != c.can {
			t.Errorf("%s: %s: %v, want possible: %t", c.model, c.set, err, c.can)
		}
	}
}

func TestIDsAndUUIDs(t *testing.T) {
	m, err := model.Lookup("h100-sxm5-80gb")
	if err != nil {
		t.Fatal(err)
	}
	g := gpuOf(m)
	make := func(profile string) machine.GPUInstance {
		t.Helper()
		in, err := g.makePartition(profile, nil)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	first, second, third := make("1g.10gb"), make("1g.10gb"), make("3g.40gb")
	if first.ID != 7 || second.ID != 8 || third.ID != 1 {
		t.Errorf("IDs %d, %d and %d, want 7, 8 and 1", first.ID, second.ID, third.ID)
	}
	uuid := first.ComputeInstances[0].UUID
	if !regexp.MustCompile(`^MIG-[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(uuid) ||
		uuid == second.ComputeInstances[0].UUID {
		t.Errorf("UUIDs %s and %s", uuid, second.ComputeInstances[0].UUID)
	}
	g.Instances = slices.DeleteFunc(g.Instances, func(i machine.GPUInstance) bool { return i.ID == 7 })
	if again := make("1g.10gb+me"); again.ID != 7 || again.ComputeInstances[0].UUID != uuid {
		t.Errorf("made again as %+v, want ID 7 and UUID %s", again, uuid)
	}
	other := gpuOf(m)
	other.Spec.UUID = "GPU-00000000-0000-4000-8000-000000000001"
	if in, err := other.makePartition("1g.10gb", nil); err != nil || in.ComputeInstances[0].UUID == uuid {
		t.Errorf("another GPU's is %+v, %v", in, err)
	}
}

func TestComputeInstances(t *testing.T) {
	m, err := model.Lookup("h100-sxm5-80gb")
	if err != nil {
		t.Fatal(err)
	}
	g := gpuOf(m)
	if _, err := g.makeGPUInstance(9, nil); err != nil {
		t.Fatal(err)
	}
	in := &g.Instances[0]
	for i, c := range []struct {
		slices, id int
		want       error
	}{{1, 0, nil}, {1, 1, nil}, {2, 0, failure.Conflict}, {4, 0, failure.Invalid}, {0, 0, failure.Invalid}, {1, 2, nil}, {1, 0, failure.Conflict}} {
		made, err := g.makeComputeInstance(in, c.slices)
		if !errors.Is(err, c.want) || err == nil && made.ID != c.id {
			t.Errorf("%d: %d slices: %+v, %v, want ID %d, %v", i, c.slices, made, err, c.id, c.want)
		}
	}
	in.ComputeInstances = slices.Delete(in.ComputeInstances, 1, 2)
	if made, err := g.makeComputeInstance(in, 1); err != nil || made.ID != 1 || in.ComputeInstances[1] != made {
		t.Errorf("in the place of the second: %+v, %v in %+v", made, err, in)
	}
}
