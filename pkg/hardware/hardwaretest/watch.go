package hardwaretest

import (
	"errors"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func testWatch(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	spec := f.Machine.Spec()
	must(t, f.Machine.RaiseXid("0", 94)) // too early to be seen
	watch := patiencetest.Watch(t, f.GPUs.Watch)
	watch.Await("the first Xid", func() { must(t, f.Machine.RaiseXid("1", 31)) }, func(e hardware.Event) bool {
		if e.Xid == 94 {
			t.Error("an event from before Watch began was seen")
		}
		return e == hardware.Event{UUID: spec.GPUs[1].UUID, Xid: 31}
	})
	// Now that it has begun, each event is seen, in order.
	for xid := uint64(100); xid < 150; xid++ {
		must(t, f.Machine.RaiseXid("5", xid))
	}
	for xid := uint64(100); xid < 150; xid++ {
		watch.Await("each Xid", nil, func(e hardware.Event) bool {
			if e.Xid == 31 || e.Xid == 0 {
				return false // raised once more than needed, or the GPU now asks for a reset
			}
			if want := (hardware.Event{UUID: spec.GPUs[5].UUID, Xid: xid}); e != want {
				t.Fatalf("event %+v, want %+v", e, want)
			}
			return true
		})
	}
	// So is that the GPU no longer asks for a reset.
	watch.Await("the reset", func() { must(t, f.Machine.Reset("5")) }, func(e hardware.Event) bool {
		return e == hardware.Event{UUID: spec.GPUs[5].UUID}
	})
	watch.End()
}

// testWatchEndsWithDriver: once the driver is gone there is nothing to watch.
func testWatchEndsWithDriver(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "t4")
	ended := beside(func() error { return f.GPUs.Watch(t.Context(), func(hardware.Event) {}) })
	must(t, f.Machine.SetDriver(simulator.DriverUnloaded))
	select {
	case err := <-ended:
		if !errors.Is(err, failure.Absent) {
			t.Errorf("Watch ended with %v", err)
		}
	case <-time.After(patiencetest.Limit):
		t.Fatal("Watch does not end with the driver")
	}
}

// testWatchSurvivesLoss: a lost GPU is noticed, and the others still watched.
func testWatchSurvivesLoss(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	watch := patiencetest.Watch(t, f.GPUs.Watch)
	watch.Await("the first Xid", func() { must(t, f.Machine.RaiseXid("0", 31)) }, func(e hardware.Event) bool { return e.Xid == 31 })
	must(t, f.Machine.Inject("4", simulator.FaultLost))
	watch.Await("the loss", nil, func(e hardware.Event) bool { return e.Xid != 31 })
	watch.Await("another GPU's Xid", func() { must(t, f.Machine.RaiseXid("6", 48)) }, func(e hardware.Event) bool {
		return e == hardware.Event{UUID: f.Machine.Spec().GPUs[6].UUID, Xid: 48}
	})
}

// testWatchWithoutEvents: a GPU without events does not cost the others theirs.
func testWatchWithoutEvents(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "l40s")
	must(t, f.Machine.Inject("0", simulator.FaultNoEvents))
	watch := patiencetest.Watch(t, f.GPUs.Watch)
	watch.Await("a GPU that has events", func() {
		must(t, f.Machine.RaiseXid("0", 31))
		must(t, f.Machine.RaiseXid("1", 31))
	}, func(e hardware.Event) bool { return e.UUID == f.Machine.Spec().GPUs[1].UUID })
	watch.End()
	for _, gpu := range []string{"1", "2", "3"} {
		must(t, f.Machine.Inject(gpu, simulator.FaultNoEvents))
	}
	if err := f.GPUs.Watch(t.Context(), func(hardware.Event) {}); !errors.Is(err, failure.Unsupported) {
		t.Errorf("watching GPUs without events: %v", err)
	}
}
