package packing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
	"github.com/dovetail-dra/dovetail/test/sched"
)

func h100(t *testing.T) *model.Model {
	t.Helper()
	m, err := model.Lookup("h100-sxm5-80gb")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWeek(t *testing.T) {
	w := Week{Model: h100(t), Nodes: 2, GPUs: 2, Load: 0.9, Seed: 1, Kinds: []Kind{
		{Weight: 3, Profile: "1g.10gb"}, {Weight: 1, Profile: "3g.40gb"}, {Weight: 1, Memory: 15 << 30}, {Weight: 1, Profile: "7g.80gb"},
	}}
	first := w.Run(Ours)
	if first != w.Run(Ours) {
		t.Error("the same seed gives another week")
	}
	if first.Requests < 100 || first.Refused == 0 || first.Scattered == 0 || first.Scattered > first.Refused || first.Refused > first.Requests/2 {
		t.Errorf("odd: %+v", first)
	}
	if other := w.Run(ByProfile); other.Requests != first.Requests || other == first {
		t.Errorf("ours %+v, profile by profile %+v", first, other)
	}
	w.Load = 0.01
	if idle := w.Run(Ours); idle.Refused > 0 {
		t.Errorf("with next to no load: %+v", idle)
	}
	w.Kinds = []Kind{{Weight: 1, Profile: "1g.10gb"}}
	w.Load = 2
	if full := w.Run(Ours); full.Refused == 0 || full.Scattered > 0 {
		t.Errorf("refused with all slices out, of which none are scattered: %+v", full)
	}
}

// TestFirstFitIsTheAllocators: the scheduler's allocator picks what first fit picks
// here, in any order of publishing.
func TestFirstFitIsTheAllocators(t *testing.T) {
	const gpus, requests = 2, 150
	m := h100(t)
	described := Machine(m, gpus)
	for _, o := range []Order{Ours, FromStart, FromEnd, ByProfile} {
		devices := o.Of(described)
		place := map[string]int{}
		for i, d := range devices {
			place[d.Name] = i
		}
		pool := catalog.Build(*described, catalog.Options{})
		pool.Devices = slices.DeleteFunc(pool.Devices, func(d resourceapi.Device) bool { _, ok := place[d.Name]; return !ok })
		slices.SortFunc(pool.Devices, func(a, b resourceapi.Device) int { return place[a.Name] - place[b.Name] })
		s := sched.New()
		s.Publish("node", pool)

		random := rand.New(rand.NewPCG(1, 0))
		state := make([]GPU, gpus)
		out := map[*resourceapi.ResourceClaim]machine.Device{}
		var held []*resourceapi.ResourceClaim
		for i := range requests {
			profile := m.MIG.Profiles[random.IntN(len(m.MIG.Profiles))].Name
			claim := sched.Claim(fmt.Sprint(i), sched.Request("p", machine.KindMIG, sched.Profile(profile)))
			at := slices.IndexFunc(devices, func(d machine.Device) bool {
				return d.Partition.Profile.Name == profile && state[d.GPU.Index].Room(d.Partition, m.MIG)
			})
			if _, err := s.Allocate(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			var want []string
			if at >= 0 {
				want = []string{devices[at].Name}
				state[devices[at].GPU.Index] = state[devices[at].GPU.Index].With(devices[at].Partition)
				out[claim] = devices[at]
				held = append(held, claim)
			}
			if got := sched.Devices(claim); !slices.Equal(got, want) {
				t.Fatalf("%s, request %d: the allocator gives %q, first fit %q", o.Name, i, got, want)
			}
			if len(held) > 0 && random.IntN(2) == 0 {
				last := held[len(held)-1]
				held = held[:len(held)-1]
				s.Release(last)
				state[out[last].GPU.Index] = state[out[last].GPU.Index].Without(out[last].Partition)
			}
		}
	}
}
