package catalog_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func golden(t *testing.T, name string, slices []catalog.Slice) {
	t.Helper()
	got := oneLineEach(t, slices)
	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the slices are not those of %s; if they should be, run: go test ./pkg/catalog -update", path)
	}
}

// oneLineEach is YAML with a line for each counter set and device, so that a change
// shows which ones it concerns.
func oneLineEach(t *testing.T, slices []catalog.Slice) string {
	t.Helper()
	var out strings.Builder
	line := func(value any) {
		content, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "  - %s\n", content)
	}
	for _, s := range slices {
		if len(s.Counters) > 0 {
			out.WriteString("- counters:\n")
		}
		for _, set := range s.Counters {
			line(set)
		}
		if len(s.Devices) > 0 {
			out.WriteString("- devices:\n")
		}
		for _, d := range s.Devices {
			line(d)
		}
	}
	return out.String()
}

// withinLimits checks what the API server would refuse.
func withinLimits(t *testing.T, slices []catalog.Slice) {
	t.Helper()
	for i, s := range slices {
		if len(s.Devices) > 0 && len(s.Counters) > 0 {
			t.Errorf("slice %d has devices and counters", i)
		}
		if len(s.Devices) > resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures || len(s.Counters) > resourceapi.ResourceSliceMaxCounterSets {
			t.Errorf("slice %d: %d devices, %d counter sets", i, len(s.Devices), len(s.Counters))
		}
		for _, set := range s.Counters {
			if len(set.Counters) == 0 || len(set.Counters) > resourceapi.ResourceSliceMaxCountersPerCounterSet {
				t.Errorf("counter set %s has %d counters", set.Name, len(set.Counters))
			}
		}
		for _, d := range s.Devices {
			if n := len(d.Attributes) + len(d.Capacity); n > resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
				t.Errorf("device %s has %d attributes and capacities", d.Name, n)
			}
			if len(d.ConsumesCounters) > resourceapi.ResourceSliceMaxDeviceCounterConsumptionsPerDevice {
				t.Errorf("device %s consumes %d counter sets", d.Name, len(d.ConsumesCounters))
			}
			for name, a := range d.Attributes {
				if a.StringValue != nil && len(*a.StringValue) > resourceapi.DeviceAttributeMaxValueLength {
					t.Errorf("device %s: %s is too long: %q", d.Name, name, *a.StringValue)
				}
			}
		}
	}
}

// attributeNames are those of each type of device.
type attributeNames map[string][]string

// same: a selector that reads an attribute of one device must be able to read it of
// every device of that type, on whatever machine.
func (names attributeNames) same(t *testing.T, pool catalog.Pool) {
	t.Helper()
	for _, d := range pool.Devices {
		kind := *d.Attributes["type"].StringValue
		var has []string
		for name := range d.Attributes {
			has = append(has, string(name))
		}
		for name := range d.Capacity {
			has = append(has, "capacity "+string(name))
		}
		slices.Sort(has)
		if want, ok := names[kind]; ok && !slices.Equal(has, want) {
			t.Errorf("device %s has %q, others of type %s have %q", d.Name, has, kind, want)
		}
		names[kind] = has
	}
}

// everythingCounts: a whole GPU, and whatever has shares of it, takes all that its
// counter set has, a partition to be made some of it, and what is there or only looks
// nothing. A NIC takes all of its lanes, a pair one, beside all of its GPU.
func everythingCounts(t *testing.T, m machine.Machine, pool catalog.Pool) {
	t.Helper()
	sets := map[string]counters{}
	for _, set := range pool.Counters {
		sets[set.Name] = set.Counters
	}
	if len(sets) != len(pool.Counters) {
		t.Errorf("%d counter sets have %d names", len(pool.Counters), len(sets))
	}
	lanes := map[string]int64{}
	for i, d := range m.Devices() {
		published := pool.Devices[i]
		taken := published.ConsumesCounters
		want := map[bool]int{true: 1}[d.Kind.HasGPU()] + map[bool]int{true: 1}[d.Kind.HasNIC()]
		if d.Static() || d.Kind == machine.KindMonitor {
			want = 0
		}
		if published.Name != d.Name || len(taken) != want {
			t.Fatalf("device %s is published as %s, and takes of %d counter sets", d.Name, published.Name, len(taken))
		}
		for _, c := range taken {
			within(t, d.Name, c, sets[c.CounterSet])
		}
		if want > 0 && d.Kind.HasGPU() && d.Kind != machine.KindMIG && !equal(taken[0].Counters, sets[d.GPU.Name()]) {
			t.Errorf("device %s does not take all of its GPU", d.Name)
		}
		if d.Kind.HasNIC() && d.VF == nil {
			nic := taken[len(taken)-1]
			all := nic.CounterSet == d.NIC.Name() && equal(nic.Counters, sets[d.NIC.Name()])
			if (d.Kind != machine.KindPair || d.Lanes == 1) != all {
				t.Errorf("device %s takes %v of its NIC's %v", d.Name, nic.Counters, sets[d.NIC.Name()])
			}
		}
		if d.Kind == machine.KindPair && d.VF == nil {
			n := taken[1].Counters["lanes"]
			lanes[d.NIC.Name()] += n.Value.Value()
		}
	}
	inMIGMode := slices.ContainsFunc(m.GPUs, func(g machine.GPU) bool { return g.MIG.Enabled })
	for nic, n := range lanes {
		if all := sets[nic]["lanes"]; n > all.Value.Value() || n < all.Value.Value() && !inMIGMode {
			t.Errorf("pairs take %d lanes of %s, which has %s", n, nic, all.Value.String())
		}
	}
}

type counters = map[string]resourceapi.Counter

func equal(a, b counters) bool {
	return maps.EqualFunc(a, b, func(a, b resourceapi.Counter) bool { return a.Value.Cmp(b.Value) == 0 })
}

// within checks that what is taken is there.
func within(t *testing.T, device string, taken resourceapi.DeviceCounterConsumption, has counters) {
	t.Helper()
	for name, counter := range taken.Counters {
		if there, ok := has[name]; !ok || counter.Value.Sign() <= 0 || counter.Value.Cmp(there.Value) > 0 {
			t.Errorf("device %s takes %s of %s in %s, which has %s", device, counter.Value.String(), name, taken.CounterSet, there.Value.String())
		}
	}
}

// unique checks the devices' names and counts them.
func unique(t *testing.T, pool catalog.Pool) int {
	t.Helper()
	names := map[string]bool{}
	for _, d := range pool.Devices {
		if problems := validation.IsDNS1123Label(d.Name); names[d.Name] || len(problems) > 0 {
			t.Errorf("device %q is there twice, or: %v", d.Name, problems)
		}
		names[d.Name] = true
	}
	return len(names)
}
