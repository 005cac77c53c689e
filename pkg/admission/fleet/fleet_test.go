package fleet_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/dovetail-dra/dovetail/pkg/admission/fleet"
	"github.com/dovetail-dra/dovetail/pkg/admission/fleet/fleettest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func TestModels(t *testing.T) {
	f := fleet.New()
	one, two, other := fleettest.Slices(t, "a", "dgx-h100"), fleettest.Slices(t, "b", "dgx-h100"), fleettest.Slices(t, "c", "hgx-h200")
	devices := 0
	for _, s := range one {
		f.OnAdd(s, true)
		devices += len(s.Spec.Devices)
	}
	models := f.Models()
	kinds := map[machine.Kind]int{}
	profiles := map[string]bool{}
	for _, m := range models {
		kinds[m.Kind()]++
		if m.Kind().HasGPU() && m.Product() != "H100 80GB HBM3" || !m.Kind().HasGPU() && m.Product() != m.Text("model") {
			t.Errorf("model of a %q", m.Product())
		}
		if p := m.Text("profile"); p != "" {
			profiles[p] = true
		}
	}
	if kinds[machine.KindGPU] != 1 || kinds[machine.KindNIC] == 0 || kinds[machine.KindNIC] > 2 || kinds[machine.KindMPS] != 1 || kinds[machine.KindMIG] != len(profiles) || len(profiles) < 6 {
		t.Errorf("%d devices are of %d models, by kind %v, of partitions %v", devices, len(models), kinds, profiles)
	}
	for _, s := range two {
		f.OnUpdate(s, s)
	}
	if now := f.Models(); len(now) != len(models) {
		t.Errorf("a second machine that is alike: %d models, before %d", len(now), len(models))
	}
	for _, s := range other {
		f.OnAdd(s, false)
	}
	if now := f.Models(); len(now) <= len(models) {
		t.Errorf("a machine of another kind: %d models, before %d", len(now), len(models))
	}
	for i, s := range append(one, other...) {
		if i%2 == 0 {
			f.OnDelete(s)
			continue
		}
		f.OnDelete(cache.DeletedFinalStateUnknown{Key: s.Name, Obj: s})
	}
	if now := f.Models(); len(now) != len(models) {
		t.Errorf("without the first and the third: %d models, want %d", len(now), len(models))
	}
	for _, s := range two {
		empty := s.DeepCopy()
		empty.Spec.Devices = nil
		f.OnUpdate(s, empty)
	}
	if now := f.Models(); len(now) != 0 {
		t.Errorf("%d models of slices without devices", len(now))
	}
}

func TestOtherDriversAreNobody(t *testing.T) {
	f := fleet.New()
	for _, s := range fleettest.Slices(t, "a", "t4") {
		s.Spec.Driver = "gpu.example.com"
		f.Set(s)
	}
	if models := f.Models(); len(models) != 0 {
		t.Errorf("%d models", len(models))
	}
}

// A cluster's start: every slice of a thousand nodes is read once.
func BenchmarkSet(b *testing.B) {
	f := fleet.New()
	slices := fleettest.Slices(b, "a", "dgx-h100")
	s := slices[len(slices)-2]
	for i := 0; b.Loop(); i++ {
		s.UID = types.UID(fmt.Sprint(i % 4000))
		f.Set(s)
	}
}
