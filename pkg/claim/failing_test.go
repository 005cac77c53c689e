package claim_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// failing fails the calls to set a compute mode for which it says so.
type failing struct {
	hardware.GPUs
	calls int
	fail  func(call int) error
}

func (f *failing) SetComputeMode(ctx context.Context, uuid string, mode machine.ComputeMode) error {
	f.calls++
	if err := f.fail(f.calls); err != nil {
		return err
	}
	return f.GPUs.SetComputeMode(ctx, uuid, mode)
}

// nth fails the n-th call.
func nth(n int) func(int) error {
	return func(call int) error {
		if call == n {
			return failure.New(failure.Busy, "GPU GPU-x is busy")
		}
		return nil
	}
}

func never(int) error { return nil }

func newFailingWorld(t *testing.T) (*world, *failing) {
	w := newWorld(t)
	hands := &failing{GPUs: w.GPUs, fail: never}
	w.GPUs = hands
	w.restart()
	return w, hands
}

func TestFailedStepIsTakenBackInTheSameCall(t *testing.T) {
	w, hands := newFailingWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00")
	hands.fail = nth(2) // the first GPU is set then
	w.refused(c, failure.Busy, "compute-mode", "GPU-x is busy")
	w.check()
	if hands.calls != 3 {
		t.Errorf("%d calls, want two and one that takes back", hands.calls)
	}
	hands.fail = never
	w.prepare(c)
	w.check("a")
}

func TestFailedReleaseGoesOn(t *testing.T) {
	w, hands := newFailingWorld(t)
	c := w.prepared("a", claimtest.Exclusive, "gpu-1b-00")
	hands.fail = func(int) error { return errors.New("still busy") }
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(c)); err == nil || !strings.Contains(err.Error(), "undo compute-mode: still busy") {
		t.Errorf("release: %v", err)
	}
	hands.fail = never
	w.unprepare(c)
	w.check()
}

// What could not be taken back at once is taken back later, without the kubelet.
func TestFailedRollBackIsMended(t *testing.T) {
	w, hands := newFailingWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00")
	hands.fail = func(call int) error {
		if call > 1 {
			return errors.New("busy")
		}
		return nil
	}
	if _, err := w.m.Prepare(t.Context(), c); err == nil || !strings.Contains(err.Error(), "undo compute-mode") {
		t.Errorf("error %v", err)
	}
	hands.fail = never
	if problems, err := w.m.Mend(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	w.check()
}

// A repair that stops half-way must not be taken for a preparation of which nobody
// was told.
func TestHalfRepairedClaimStaysPrepared(t *testing.T) {
	w, hands := newFailingWorld(t)
	c := w.prepared("a", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00")
	for _, gpu := range []string{"0", "1"} {
		if err := w.Machine.SetComputeMode(gpu, machine.ComputeModeDefault); err != nil {
			t.Fatal(err)
		}
	}
	hands.calls, hands.fail = 0, nth(2)
	w.refused(c, failure.Busy, "GPU-x is busy")
	hands.fail = never
	w.restart()
	w.check("a")
}

// Where NVML cannot be asked, nothing says that a GPU's settings are gone.
func TestReleaseWaitsForALibraryThatIsMissing(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", claimtest.Exclusive, "gpu-1b-00")
	if err := w.Machine.SetDriver(simulator.DriverMissing); err != nil {
		t.Fatal(err)
	}
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(c)); !errors.Is(err, failure.Unreachable) {
		t.Errorf("release: %v", err)
	}
	if records, err := w.m.Records(); err != nil || len(records) != 1 {
		t.Errorf("records %v, %v", records, err)
	}
	if err := w.Machine.SetDriver(simulator.DriverUnloaded); err != nil {
		t.Fatal(err)
	}
	w.unprepare(c) // an unloaded driver has no settings
}

// The kubelet cancels what it no longer wants, and may tell the other agent.
func TestOvertakenCallsDoNothing(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "gpu-1b-00")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.m.Prepare(over, c); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is over: %v", err)
	}
	w.check()
	w.Crowded = true
	w.restart()
	if err := w.Delete("a"); err != nil {
		t.Fatal(err)
	}
	w.refused(c, failure.Conflict, "released")
	w.check()
}

func TestLostGPU(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", claimtest.Exclusive, "gpu-1b-00")
	if err := w.Machine.Inject("0", simulator.FaultLost); err != nil {
		t.Fatal(err)
	}
	w.refused(c, failure.Absent, "gpu-1b-00")
	w.unprepare(c) // there is nothing to put back
	w.check()
}
