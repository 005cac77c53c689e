package hardwaretest

import (
	"errors"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// testMIGProfiles makes every profile at every placement of every model.
func testMIGProfiles(t *testing.T, make func(*testing.T, string) Fixture) {
	for _, name := range []string{"dgx-a100", "a30", "dgx-h100", "hgx-h200", "hgx-b200", "gb200", "rtx-pro-6000"} {
		t.Run(name, func(t *testing.T) {
			g := divide(t, make(t, name), 0)
			for _, p := range g.gpu.MIG.Profiles {
				for _, at := range p.Placements {
					g.makeAndDestroy(p, at)
				}
			}
			if len(g.gpu.MIG.Profiles) < 5 {
				t.Errorf("it has %d profiles", len(g.gpu.MIG.Profiles))
			}
		})
	}
}

func (g migGPU) makeAndDestroy(p machine.MIGProfile, at machine.Placement) {
	g.t.Helper()
	id, made := g.makeWhole(p.Name, at.Start)
	if !strings.HasPrefix(made.UUID, "MIG-") || made.ComputeSlices != p.ComputeSlices {
		g.t.Errorf("%s at %d: compute instance %+v", p.Name, at.Start, made)
	}
	if got := g.check(); len(got) != 1 || got[0].ID != id || got[0].ProfileID != p.ID || got[0].Placement != at ||
		len(got[0].ComputeInstances) != 1 || got[0].ComputeInstances[0] != made {
		g.t.Errorf("%s at %d is seen as %+v", p.Name, at.Start, got)
	}
	must(g.t, g.GPUs.DestroyComputeInstance(g.t.Context(), g.uuid, id, made.ID))
	g.destroy(id)
	if got := g.instances(); len(got) != 0 {
		g.t.Errorf("%s at %d is destroyed, and %+v is left", p.Name, at.Start, got)
	}
}

// testMIGRules: what can be there together, and in which order it comes.
func testMIGRules(t *testing.T, make func(*testing.T, string) Fixture) {
	type want struct {
		profile string
		start   int
		fits    bool
	}
	for name, c := range map[string]struct {
		machine string
		wants   []want
	}{
		"3g, then 4g":         {"dgx-h100", []want{{"3g.40gb", 4, true}, {"4g.40gb", 0, true}, {"1g.10gb", 6, false}}},
		"4g, then 3g":         {"dgx-h100", []want{{"4g.40gb", 0, true}, {"3g.40gb", 4, true}}},
		"3g where 4g must be": {"dgx-h100", []want{{"3g.40gb", 0, true}, {"4g.40gb", 0, false}, {"3g.40gb", 4, true}}},
		"overlap":             {"dgx-h100", []want{{"2g.20gb", 2, true}, {"1g.10gb", 3, false}, {"1g.20gb", 2, false}, {"1g.10gb", 4, true}}},
		"the whole":           {"dgx-h100", []want{{"1g.10gb", 6, true}, {"7g.80gb", 0, false}}},
		"seven": {"dgx-h100", []want{
			{"1g.10gb", 0, true}, {"1g.10gb", 1, true}, {"1g.10gb", 2, true}, {"1g.10gb", 3, true},
			{"1g.10gb", 4, true}, {"1g.10gb", 5, true}, {"1g.10gb", 6, true}, {"1g.10gb", 6, false}, {"1g.20gb", 6, false},
		}},
		"media once": {"dgx-h100", []want{{"1g.10gb+me", 0, true}, {"1g.10gb+me", 1, false}, {"1g.10gb", 1, true}}},
		"all media": {"rtx-pro-6000", []want{
			{"1g.24gb+me.all", 9, true}, {"1g.24gb+me", 0, false}, {"1g.24gb", 0, false}, {"2g.48gb+me.all", 0, false}, {"2g.48gb-me", 0, true}, {"1g.24gb-me", 6, true},
		}},
		"quarters": {"rtx-pro-6000", []want{{"1g.24gb", 0, true}, {"2g.48gb", 6, true}, {"2g.48gb", 0, false}, {"1g.24gb+gfx", 3, true}}},
		"A30":      {"a30", []want{{"2g.12gb", 2, true}, {"1g.6gb", 0, true}, {"1g.6gb+me", 1, true}, {"2g.12gb", 0, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := divide(t, make(t, c.machine), 0)
			there := 0
			for _, w := range c.wants {
				_, err := g.try(w.profile, w.start)
				if w.fits {
					there++
				}
				if w.fits != (err == nil) || err != nil && !errors.Is(err, failure.Conflict) {
					t.Errorf("%s at %d: %v, want it to fit: %t", w.profile, w.start, err, w.fits)
				}
			}
			if got := g.check(); len(got) != there {
				t.Errorf("there are %+v, want %d", got, there)
			}
		})
	}
}

// testMIGRoomAgain: what is destroyed leaves its room to others.
func testMIGRoomAgain(t *testing.T, make func(*testing.T, string) Fixture) {
	g := divide(t, make(t, "dgx-h100"), 0)
	uuids := map[string]int{}
	for range 2 {
		var ids []int
		for start := range 7 {
			id, made := g.makeWhole("1g.10gb", start)
			ids = append(ids, id)
			uuids[made.UUID]++
		}
		if len(uuids) != 7 {
			t.Errorf("seven partitions have UUIDs %v", uuids)
		}
		g.check()
		for _, id := range ids {
			must(t, g.GPUs.DestroyComputeInstance(t.Context(), g.uuid, id, 0))
			g.destroy(id)
		}
	}
	g.make("7g.80gb", 0)
	g.check()
}
