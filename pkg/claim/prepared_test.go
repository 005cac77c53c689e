package claim_test

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// hasDevices compares what claims are said to have, but for parts of hardware.
func (w *world) hasDevices(wantAll bool, want ...string) {
	w.t.Helper()
	prepared, err := w.m.Prepared()
	w.must(err)
	names, all := prepared.Names, prepared.All
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

// What claims hold is told by what it is of the hardware, as long as the boot lasts.
func TestHeldDevices(t *testing.T) {
	w := newWorld(t)
	device := func(name string) machine.Device {
		d, _ := w.m.Machine().Device(name)
		return d
	}
	w.prepared("a", "", "pair-1b-00-18-00")
	w.prepared("b", "", "mig-43-00-1g10gb-4", "rdma-40-00")
	want := []machine.Held{
		{Name: "pair-1b-00-18-00", Kind: machine.KindPair, GPU: device("gpu-1b-00").GPU.UUID, Function: device("nic-18-00").NIC.Address, NIC: device("nic-18-00").NIC.Address, Alone: true},
		{Name: "mig-43-00-1g10gb-4", Kind: machine.KindMIG, GPU: device("gpu-43-00").GPU.UUID, Placement: machine.Placement{Start: 4, Size: 1}},
		{Name: "rdma-40-00", Kind: machine.KindRDMA, Function: device("nic-40-00").NIC.Address, NIC: device("nic-40-00").NIC.Address},
	}
	holds := func() []machine.Held {
		prepared, err := w.m.Prepared()
		w.must(err)
		return prepared.Held
	}
	if got := holds(); !reflect.DeepEqual(got, want) {
		t.Errorf("held: %+v\nwant %+v", got, want)
	}
	w.must(w.Machine.Reboot())
	w.restart()
	if got := holds(); len(got) != 0 {
		t.Errorf("after a reboot, held: %+v", got)
	}
	w.hasDevices(true, "mig-43-00-1g10gb-4", "nic-18-00", "rdma-40-00")
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
