package claim_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
)

// hasDevices compares what claims are said to have, but for parts of hardware.
func (w *world) hasDevices(wantAll bool, want ...string) {
	w.t.Helper()
	names, all, err := w.m.Prepared()
	w.must(err)
	maps.DeleteFunc(names, func(name string, _ bool) bool { return strings.Contains(name, "/") || strings.HasPrefix(name, "gpu-") })
	if got := slices.Sorted(maps.Keys(names)); all != wantAll || !slices.Equal(got, want) {
		w.t.Errorf("claims have %q, all: %t; want %q", got, all, want)
	}
}

func TestPreparedDevices(t *testing.T) {
	w := newWorld(t)
	w.hasDevices(true)
	w.prepared("a", "", "mig-1b-00-1g10gb-4")
	share := w.share("b", "", claimtest.Share{Request: "r", Device: "mps-43-00", ID: "s", Memory: "10Gi"})
	w.prepare(share)
	w.hasDevices(true, "mig-1b-00-1g10gb-4", "mps-43-00")

	w.damage(w.record("a"), "{") // there is the copy
	w.hasDevices(true, "mig-1b-00-1g10gb-4", "mps-43-00")
	w.must(os.Remove(w.specification("a")))
	w.hasDevices(false, "mps-43-00")

	w.unprepare(share)
	w.hasDevices(false)
}

// What a claim was given before its PartitionClass went is still prepared, by an agent
// that knows nothing of the class; its allocation says how much it has.
func TestShareOfASizeThatIsGone(t *testing.T) {
	w := newWorld(t)
	c := w.share("a", "", claimtest.Share{Request: "r", Device: "mps-1b-00-small", ID: "s", Memory: "10Gi", Compute: 25})
	w.prepare(c)
	w.hasEnv(c, 0, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25")
	w.hasDevices(true, "mps-1b-00-small")
	w.restart()
	w.prepare(c)
	w.check("a")
	w.unprepare(c)
	w.check()
}
