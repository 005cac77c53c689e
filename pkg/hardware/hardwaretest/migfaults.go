package hardwaretest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// testMIGBusy: what somebody holds stays, and goes when it is let go.
func testMIGBusy(t *testing.T, make func(*testing.T, string) Fixture) {
	g := divide(t, make(t, "dgx-h100"), 0)
	destroyCompute := func(id int) func() error {
		return func() error { return g.GPUs.DestroyComputeInstance(t.Context(), g.uuid, id, 0) }
	}
	destroy := func(id int) func() error {
		return func() error { return g.GPUs.DestroyGPUInstance(t.Context(), g.uuid, id) }
	}
	held := func(what string, change func() error, instance ...int) {
		t.Helper()
		hold, err := g.Machine.Hold(g.uuid, instance...)
		must(t, err)
		for range 2 {
			if err := change(); !errors.Is(err, failure.Busy) {
				t.Errorf("%s while it is held: %v", what, err)
			}
		}
		g.check()
		hold.Release()
		must(t, change())
	}
	first, _ := g.makeWhole("2g.20gb", 0)
	second, _ := g.makeWhole("2g.20gb", 4)
	held("destroying the compute instance", destroyCompute(first), first, 0)
	held("destroying the compute instance of a GPU instance", destroyCompute(second), second)
	held("destroying the GPU instance", destroy(first), first)
	g.destroy(second)
	held("switching MIG mode", func() error { return g.GPUs.SetMIGMode(t.Context(), g.uuid, false) })
}

// testMIGFailures: each call that changes something can fail, with nothing changed, and
// succeed the next time.
func testMIGFailures(t *testing.T, make func(*testing.T, string) Fixture) {
	g := divide(t, make(t, "dgx-h100"), 0)
	var id int
	for _, step := range []struct {
		call string
		do   func() error
	}{
		{simulator.CallMakeGPUInstance, func() (err error) { id, err = g.try("3g.40gb", 4); return err }},
		{simulator.CallMakeComputeInstance, func() error { _, err := g.GPUs.MakeComputeInstance(t.Context(), g.uuid, id); return err }},
		{simulator.CallDestroyComputeInstance, func() error { return g.GPUs.DestroyComputeInstance(t.Context(), g.uuid, id, 0) }},
		{simulator.CallDestroyGPUInstance, func() error { return g.GPUs.DestroyGPUInstance(t.Context(), g.uuid, id) }},
		{simulator.CallSetMIGMode, func() error { return g.GPUs.SetMIGMode(t.Context(), g.uuid, false) }},
	} {
		before := g.check()
		for _, kind := range []simulator.FailureKind{simulator.FailureUnknown, simulator.FailureInUse} {
			must(t, g.Machine.Fail(g.uuid, step.call, simulator.Failure{Times: 1, Error: kind}))
			err := step.do()
			if err == nil || errors.Is(err, failure.Busy) != (kind == simulator.FailureInUse) {
				t.Errorf("%s that fails with %s: %v", step.call, kind, err)
			}
			if after := g.check(); len(after) != len(before) {
				t.Errorf("%s failed, and made %+v of %+v", step.call, after, before)
			}
		}
		must(t, step.do())
	}
}

// testMIGHalfMade: a GPU instance whose compute instance cannot be made is there to be
// seen and destroyed.
func testMIGHalfMade(t *testing.T, make func(*testing.T, string) Fixture) {
	g := divide(t, make(t, "dgx-h100"), 0)
	must(t, g.Machine.Fail(g.uuid, simulator.CallMakeComputeInstance,
		simulator.Failure{Times: 1, Error: simulator.FailureInsufficientResources}))
	id := g.make("1g.10gb", 2)
	if _, err := g.GPUs.MakeComputeInstance(t.Context(), g.uuid, id); !errors.Is(err, failure.Conflict) || strings.Contains(err.Error(), "destroy") {
		t.Errorf("making the compute instance: %v; there is none to destroy", err)
	}
	if got := g.check(); len(got) != 1 || got[0].ID != id {
		t.Errorf("what is left is seen as %+v", got)
	}
	g.destroy(id)
	if got := g.check(); len(got) != 0 {
		t.Errorf("%+v are left", got)
	}
}

// testMIGLost: a GPU that falls off the bus in the middle of a call has no partitions,
// and none when it is back.
func testMIGLost(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	g := divide(t, f, 0)
	g.makeWhole("1g.10gb", 0)
	must(t, f.Machine.Fail(g.uuid, simulator.CallMakeComputeInstance, simulator.Failure{Times: 1, Error: simulator.FailureLost}))
	id := g.make("1g.10gb", 1)
	if _, err := g.GPUs.MakeComputeInstance(t.Context(), g.uuid, id); !errors.Is(err, failure.Absent) {
		t.Errorf("while the GPU is lost: %v", err)
	}
	if _, err := g.GPUs.Partitions(t.Context(), g.uuid); !errors.Is(err, failure.Absent) {
		t.Errorf("partitions of a lost GPU: %v", err)
	}
	if err := g.GPUs.DestroyGPUInstance(t.Context(), g.uuid, id); !errors.Is(err, failure.Absent) {
		t.Errorf("destroying on a lost GPU: %v", err)
	}
	checkDescription(t, f, describe(t, f))
	must(t, f.Machine.Restore(g.uuid, simulator.FaultLost))
	p, err := f.GPUs.Partitions(t.Context(), g.uuid)
	if err != nil || p.Enabled || len(p.Instances) != 0 {
		t.Errorf("when it is back: %+v, %v", p, err)
	}
	checkDescription(t, f, describe(t, f))
}

// testMIGReboot: nothing is left but what an administrator made at boot.
func testMIGReboot(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "static-mig")
	g := divide(t, f, 1)
	g.makeWhole("3g.40gb", 4)
	before := describe(t, f)
	if len(before.GPUs[0].MIG.Instances) != 2 || len(before.GPUs[1].MIG.Instances) != 1 {
		t.Errorf("before a reboot: %+v", before.GPUs)
	}
	must(t, f.Machine.Reboot())
	f.Machine.Sync()
	after := describe(t, f)
	checkDescription(t, f, after)
	if len(after.GPUs[0].MIG.Instances) != 2 || len(after.GPUs[1].MIG.Instances) != 0 {
		t.Errorf("after a reboot: %+v", after.GPUs)
	}
}

// testMIGSideBySide: a change that takes its time on one GPU delays no other.
func testMIGSideBySide(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	slow := divide(t, f, 0)
	var others []migGPU
	for i := range 7 {
		others = append(others, divide(t, f, i+1))
	}
	must(t, f.Machine.Slow("0", simulator.CallMakeGPUInstance, time.Hour))
	p := slow.profile("3g.40gb")
	made := beside(func() error {
		_, err := f.GPUs.MakeGPUInstance(t.Context(), slow.uuid, p.ID, p.Placements[0])
		return err
	})
	for _, g := range others {
		id, ci := g.makeWhole("3g.40gb", 4)
		must(t, g.GPUs.DestroyComputeInstance(t.Context(), g.uuid, id, ci.ID))
		g.destroy(id)
	}
	select {
	case err := <-made:
		t.Fatalf("the slow GPU answered (%v) before the others, which waited for it", err)
	default:
	}
	must(t, f.Machine.Slow("0", simulator.CallMakeGPUInstance, 0))
	must(t, <-made)
	slow.check()
}

// testMIGConcurrency: what is seen while partitions come and go is one that is there,
// or none; it is for the race detector, too.
func testMIGConcurrency(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "static-mig")
	g := divide(t, f, 2)
	var changes sync.WaitGroup
	for _, profile := range []string{"3g.40gb", "1g.10gb"} {
		p := g.profile(profile)
		at := p.Placements[len(p.Placements)/2] // these do not overlap
		changes.Go(func() {
			for range 10 {
				id, err := f.GPUs.MakeGPUInstance(t.Context(), g.uuid, p.ID, at)
				if err != nil {
					t.Error(err)
					return
				}
				ci, err := f.GPUs.MakeComputeInstance(t.Context(), g.uuid, id)
				if err != nil {
					t.Error(err)
				}
				if err := f.GPUs.DestroyComputeInstance(t.Context(), g.uuid, id, ci.ID); err != nil {
					t.Error(err)
				}
				if err := f.GPUs.DestroyGPUInstance(t.Context(), g.uuid, id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ended := beside(func() error { changes.Wait(); return nil })
	for {
		d := describe(t, f)
		if len(d.GPUs) != 3 || len(d.Faults) != 0 {
			t.Errorf("%d GPUs, faults %+v", len(d.GPUs), d.Faults)
		}
		for _, in := range append(g.instances(), d.GPUs[2].MIG.Instances...) {
			for _, ci := range in.ComputeInstances {
				if ci.UUID == "" {
					t.Errorf("a compute instance without UUID in %+v", in)
				}
			}
		}
		select {
		case err := <-ended:
			must(t, err)
			g.check()
			return
		default:
		}
	}
}

// testMIGEvents: whoever changes MIG mode or instances, it is an event of the GPU.
func testMIGEvents(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	spec := f.Machine.Spec()
	watch := patiencetest.Watch(t, f.GPUs.Watch)
	of := func(gpu int) func(hardware.Event) bool {
		return func(e hardware.Event) bool { return e == hardware.Event{UUID: spec.GPUs[gpu].UUID} }
	}
	on := false
	watch.Await("the mode that changes", func() { on = !on; must(t, f.Machine.SetMIGMode("1", on)) }, of(1))
	must(t, f.GPUs.SetMIGMode(t.Context(), spec.GPUs[4].UUID, true))
	watch.Await("the mode that is switched on", nil, of(4))
	g := migGPU{Fixture: f, t: t, uuid: spec.GPUs[4].UUID, gpu: describe(t, f).GPUs[4]}
	g.make("1g.10gb", 0)
	watch.Await("the instance", nil, of(4))
}
