package claim_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// A call that fails leaves nothing, whichever it is, and the next try succeeds.
func TestFailedPartitionIsTakenBackInTheSameCall(t *testing.T) {
	for _, call := range []string{setMode, createGPU, createCompute} {
		for _, kind := range []simulator.FailureKind{simulator.FailureUnknown, simulator.FailureInUse, simulator.FailureInsufficientResources} {
			t.Run(call+"/"+string(kind), func(t *testing.T) {
				w := newWorld(t)
				c := w.allocate("a", "", "mig-43-00-1g10gb-0", "mig-1b-00-1g10gb-4")
				w.must(w.Machine.Fail("0", call, simulator.Failure{Times: 1, Error: kind}))
				if devices, err := w.m.Prepare(t.Context(), c); err == nil {
					t.Fatalf("prepared: %+v", devices)
				}
				w.check()
				w.prepare(c)
				w.check("a")
			})
		}
	}
}

func TestGPULostInTheMiddle(t *testing.T) {
	for _, call := range []string{setMode, createGPU, createCompute} {
		w := newWorld(t)
		c := w.allocate("a", "", "mig-1b-00-1g10gb-4")
		w.must(w.Machine.Fail("0", call, simulator.Failure{Times: 1, Error: simulator.FailureLost}))
		w.refused(c, failure.Absent, "lost")
		if records, err := w.m.Records(); err != nil || len(records) > 0 {
			t.Errorf("lost in %s: on record %+v, %v", call, records, err)
		}
		w.must(w.Machine.Restore("0", simulator.FaultLost))
		w.prepare(c)
		w.check("a")
	}
}

func TestBusyPartitionIsReleasedOnceItsHolderGoes(t *testing.T) {
	w := newWorld(t)
	w.BusyPatience = time.Minute
	w.Holders = func(gpu *machine.GPU, instance *int) ([]string, error) {
		return []string{fmt.Sprintf("monitor (process 4711, %s, instance %d)", gpu.Name(), *instance)}, nil
	}
	w.restart()
	c := w.prepared("a", "", "mig-1b-00-1g10gb-4")
	id := w.mig(0).Instances[0].ID
	hold, err := w.Machine.Hold("0", id)
	w.must(err)
	told := make(chan struct{})
	w.m.Waiting = waiting(w, func() { close(told) })
	released := make(chan error, 1)
	go func() { released <- w.m.Unprepare(t.Context(), claimtest.Reference(c)) }()
	<-told
	if want := fmt.Sprintf("monitor (process 4711, gpu-1b-00, instance %d)", id); !strings.Contains(w.Waits[0].Error(), want) {
		t.Errorf("told %v, want %s", w.Waits[0], want)
	}
	hold.Release()
	w.must(<-released)
	w.check()
}

// Most releases wait a moment, and nobody is told of that: only of one that takes long, or
// that gives up.
func TestShortWaitIsNotTold(t *testing.T) {
	w := newWorld(t)
	w.BusyPatience = time.Minute
	w.restart()
	w.m.Quiet = time.Hour
	c := w.prepared("a", "", "mig-1b-00-1g10gb-4")
	w.must(w.Machine.Fail("0", destroyGPU, simulator.Failure{Times: 1, Error: simulator.FailureInUse}))
	w.unprepare(c)
	if len(w.Waits) > 0 {
		t.Errorf("told %v", w.Waits)
	}

	w.prepare(c)
	w.must(w.Machine.Fail("0", destroyGPU, simulator.Failure{Times: 1, Error: simulator.FailureInUse}))
	w.m.BusyPatience = 0
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(c)); !errors.Is(err, failure.Busy) || len(w.Waits) != 1 {
		t.Errorf("given up: %v, told %v", err, w.Waits)
	}
	w.unprepare(c)
	w.check()
}

// A release that gave up goes on with the next call, or without one, and makes
// nothing again meanwhile.
func TestInterruptedReleaseGoesOn(t *testing.T) {
	for name, goOn := range map[string]func(*world, *resourceapi.ResourceClaim){
		"by the next call": func(w *world, c *resourceapi.ResourceClaim) {
			w.must(w.m.Unprepare(w.t.Context(), claimtest.Reference(c)))
		},
		"by mending":        func(w *world, _ *resourceapi.ResourceClaim) { _, err := w.m.Mend(w.t.Context()); w.must(err) },
		"by a fresh agent":  func(w *world, _ *resourceapi.ResourceClaim) { w.restart() },
		"for another claim": func(w *world, c *resourceapi.ResourceClaim) { w.prepare(c); w.check("a"); w.unprepare(c) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.prepared("a", "", "mig-1b-00-1g10gb-4")
			w.must(w.Machine.Fail("0", destroyGPU, simulator.Failure{Times: 1, Error: simulator.FailureInUse}))
			if err := w.m.Unprepare(t.Context(), claimtest.Reference(c)); !errors.Is(err, failure.Busy) || len(w.Waits) != 1 {
				t.Fatalf("release: %v, told %v", err, w.Waits)
			}
			if left := w.mig(0).Instances; len(left) != 1 || len(left[0].ComputeInstances) > 0 {
				t.Fatalf("left %+v", left)
			}
			if name != "for another claim" {
				w.must(w.Machine.Fail("0", createCompute, simulator.Failure{Times: 1, Error: simulator.FailureUnknown}))
			}
			goOn(w, c)
			w.check()
		})
	}
}

// Partitions do not outlive a boot or a driver, and are made again.
func TestPartitionsAreMadeAgain(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", "", "mig-1b-00-1g10gb-4")
	w.must(w.Machine.Reboot())
	w.restart()
	if left := w.mig(0).Instances; len(left) > 0 {
		t.Fatalf("after a reboot: %+v", left)
	}
	w.prepare(c)
	w.check("a")

	for _, to := range []simulator.Driver{simulator.DriverUnloaded, simulator.DriverLoaded} {
		w.must(w.Machine.SetDriver(to))
	}
	if problems, err := w.m.Mend(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	w.check("a")
	w.unprepare(c)
	w.check()
}

// waiting is w's own, and tells f once.
func waiting(w *world, f func()) func(journal.Claim, error) {
	tell := w.m.Waiting
	return func(c journal.Claim, err error) {
		tell(c, err)
		f()
	}
}

// A partition that is gone under a prepared claim is made again, and that is told: its
// Pods have what it was before.
func TestPartitionThatIsMadeAgainIsTold(t *testing.T) {
	w := newWorld(t)
	w.prepare(w.allocate("a", "", "mig-1b-00-1g10gb-4"))
	w.must(w.Machine.DestroyPartition("0", w.mig(0).Instances[0].ID))
	for range 2 {
		if problems, err := w.m.Mend(t.Context()); err != nil || len(problems) > 0 {
			t.Fatalf("%v, %v", problems, err)
		}
	}
	if want := []string{"a mig-1b-00-1g10gb-4"}; !slices.Equal(w.Remade, want) {
		t.Errorf("told %q, want %q", w.Remade, want)
	}
	w.check("a")
}
