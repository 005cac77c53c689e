package packing

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

var update = flag.Bool("update", false, "write the table of the document")

const (
	document = "../../docs/packing.md"
	begin    = "<!-- table:begin (written by go test ./test/packing -update) -->\n"
	end      = "<!-- table:end -->\n"
)

func models(t *testing.T) []*model.Model {
	t.Helper()
	models, err := Models()
	if err != nil || len(models) < 8 {
		t.Fatalf("%d models, %v", len(models), err)
	}
	return models
}

// TestOursIsNeverWorse: on one GPU, whatever combination of partitions would fit and
// in whatever order its requests arrive, first fit satisfies at least as many in our
// order as it does from the start up and profile by profile.
func TestOursIsNeverWorse(t *testing.T) {
	var table strings.Builder
	table.WriteString("| GPU | combinations that fit | arrival orders | all satisfied: ours | from the start, and NVIDIA's | from the end | " +
		"against from the start: fewer / more satisfied | against from the end |\n|---|---|---|---|---|---|---|---|\n")
	for _, m := range models(t) {
		got := TryAll(m, Ours, FromStart, ByProfile, FromEnd)
		for i, o := range []Order{Ours, FromStart, ByProfile} {
			if got.Worse[i] > 0 {
				t.Errorf("%s: ours satisfies fewer than %s in %d of %d arrival orders", m.Name, o.Name, got.Worse[i], got.Arrivals)
			}
		}
		if got.Full[1] != got.Full[2] {
			t.Errorf("%s: from the start %d, profile by profile %d: the table needs a column more", m.Name, got.Full[1], got.Full[2])
		}
		share := func(n int) string { return fmt.Sprintf("%d (%.0f%%)", n, 100*float64(n)/float64(got.Arrivals)) }
		fmt.Fprintf(&table, "| %s | %d | %d | %s | %s | %s | %d / %d | %d / %d |\n", m.ProductName, got.Combinations, got.Arrivals,
			share(got.Full[0]), share(got.Full[1]), share(got.Full[3]), got.Worse[1], got.Better[1], got.Worse[3], got.Better[3])
	}
	compare(t, table.String())
}

// compare the document's table, or write it.
func compare(t *testing.T, table string) {
	t.Helper()
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(content), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", document, begin, end)
	}
	if *update {
		if err := os.WriteFile(document, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != table {
		t.Errorf("the table in %s is not this; if it should be, run go test ./test/packing -update\n%s", document, table)
	}
}

// TestCountersAreTheDriversRules: every combination of partitions that the driver
// allows fits into the published counters, and no other.
func TestCountersAreTheDriversRules(t *testing.T) {
	for _, m := range models(t) {
		described := Machine(m, 1)
		pool := catalog.Build(*described, catalog.Options{})
		left := map[string]int64{}
		for name, counter := range pool.Counters[0].Counters {
			left[name] = counter.Value.Value()
		}
		var partitions []*machine.Partition
		var taken []map[string]resourceapi.Counter
		for i, d := range described.Devices() {
			if d.Kind == machine.KindMIG {
				partitions = append(partitions, d.Partition)
				taken = append(taken, pool.Devices[i].ConsumesCounters[0].Counters)
			}
		}
		var extend func(GPU, int)
		extend = func(g GPU, from int) {
			for i := from; i < len(partitions); i++ {
				allowed := g.Room(partitions[i], m.MIG)
				if fits := fits(left, taken[i]); fits != allowed {
					t.Fatalf("%s: beside %+v, %s at %d is allowed: %v, by the counters: %v",
						m.Name, g, partitions[i].Profile.Name, partitions[i].Placement.Start, allowed, fits)
				}
				if allowed {
					add(left, taken[i], -1)
					extend(g.With(partitions[i]), i+1)
					add(left, taken[i], 1)
				}
			}
		}
		extend(GPU{}, 0)
	}
}

// TestMost: how many of each profile fit is what NVIDIA's tables say, and so many are
// allowed beside each other.
func TestMost(t *testing.T) {
	for _, m := range models(t) {
		one := Machine(m, 1)
		mig := &one.GPUs[0].MIG
		for i := range mig.Profiles {
			p := &mig.Profiles[i]
			allowed := 0
			for g := (GPU{}); ; allowed++ {
				next := firstFit(partitionsOf(one, p), g, m.MIG)
				if next == nil {
					break
				}
				g = g.With(next)
			}
			if most := mig.Most(p); most != p.MaxInstances || most != allowed {
				t.Errorf("%s: %d of %s fit, of which %d are allowed; want %d", m.Name, most, p.Name, allowed, p.MaxInstances)
			}
		}
	}
}

// TestTotals: what is shared out is what the hardware has.
func TestTotals(t *testing.T) {
	for _, m := range models(t) {
		mig := &Machine(m, 1).GPUs[0].MIG
		if got := mig.Totals(); got.Engines != m.MIG.Engines || got.ComputeSlices != m.MIG.Slices || got.MemoryUnits != m.MIG.MemoryUnits {
			t.Errorf("%s: %+v, want %+v, %d slices and %d units", m.Name, got, m.MIG.Engines, m.MIG.Slices, m.MIG.MemoryUnits)
		}
	}
}

func partitionsOf(m *machine.Machine, p *machine.MIGProfile) []*machine.Partition {
	var partitions []*machine.Partition
	for _, d := range Ours.Of(m) {
		if d.Partition.Profile.ID == p.ID {
			partitions = append(partitions, d.Partition)
		}
	}
	return partitions
}

func fits(left map[string]int64, taken map[string]resourceapi.Counter) bool {
	for name, counter := range taken {
		if counter.Value.Value() > left[name] {
			return false
		}
	}
	return true
}

func add(left map[string]int64, taken map[string]resourceapi.Counter, sign int64) {
	for name, counter := range taken {
		left[name] += sign * counter.Value.Value()
	}
}
