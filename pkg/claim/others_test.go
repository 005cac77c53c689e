package claim_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// A claim that comes and goes within one look.
func TestClaimThatComesAndGoesWithinOneLook(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "mig-1b-00-1g10gb-4")
	now, _, err := w.m.Unclaimed(t.Context(), func(ctx context.Context) (machine.Machine, error) {
		w.prepare(c)
		d, err := w.Describe(ctx)
		w.unprepare(c)
		return *d, err
	})
	w.must(err)
	for _, d := range now.Devices() {
		if d.Static() {
			t.Errorf("published as static: %s (of a claim)", d.Name)
		}
	}
	if now.GPUs[0].MIG.Enabled {
		t.Error("whole GPU not offered")
	}
}

// A failing prepare within one look
func TestPreparationThatFailsWithinOneLook(t *testing.T) {
	w := newWorld(t)
	w.must(w.Machine.Fail("0", createCompute, simulator.Failure{Times: 1, Error: simulator.FailureUnknown}))
	var seen machine.Machine
	w.GPUs = spy{w.GPUs, func() { d, err := w.Describe(t.Context()); w.must(err); seen = *d }}
	w.restart()
	c := w.allocate("a", "", "mig-1b-00-1g10gb-4")
	now, _, err := w.m.Unclaimed(t.Context(), func(ctx context.Context) (machine.Machine, error) {
		_, err := w.m.Prepare(ctx, c)
		if err == nil {
			t.Fatal("prepared")
		}
		return seen, nil
	})
	w.must(err)
	for _, f := range now.AllFaults() {
		t.Errorf("fault told: %+v", f)
	}
}

type spy struct {
	hardware.GPUs
	see func()
}

func (g spy) MakeComputeInstance(ctx context.Context, uuid string, gi int) (machine.ComputeInstance, error) {
	g.see()
	return g.GPUs.MakeComputeInstance(ctx, uuid, gi)
}

// Steps that were never tried are undone as if they might have been.
func TestRollbackLeavesWhatItNeverBegan(t *testing.T) {
	w := newWorld(t)
	w.must(w.Machine.Fail("0", createCompute, simulator.Failure{Times: 1, Error: simulator.FailureUnknown}))
	w.GPUs = thief{w.GPUs, func() {
		// an administrator makes a partition on the other GPU while ours is under way
		if mig := w.mig(1); len(mig.Instances) == 0 {
			w.must(w.Machine.SetMIGMode("1", true))
			start := 5
			_, err := w.Machine.MakePartition("1", "1g.10gb", &start)
			w.must(err)
		}
	}}
	w.restart()
	c := w.allocate("a", "", "mig-1b-00-1g10gb-4", "mig-43-00-1g10gb-5")
	if _, err := w.m.Prepare(t.Context(), c); err == nil {
		t.Fatal("prepared")
	}
	if mig := w.mig(1); len(mig.Instances) != 1 {
		t.Errorf("what the administrator made was destroyed: %+v enabled=%t", mig.Instances, mig.Enabled)
	}
}

// The partition is gone, MIG mode cannot go off: the claim is not released.
func TestReleaseDoesNotWaitForTheMode(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", "", "mig-1b-00-1g10gb-4")
	hold, err := w.Machine.Hold("0") // a monitor opens the GPU, not the partition
	w.must(err)
	defer hold.Release()
	err = w.m.Unprepare(t.Context(), claimtest.Reference(c))
	t.Logf("release: %v; instances left %+v", err, w.mig(0).Instances)
	if err != nil {
		t.Error("the claim is not released though its partition is destroyed")
	}
	b := w.allocate("b", "", "mig-1b-00-1g10gb-4")
	if _, err := w.m.Prepare(t.Context(), b); err != nil {
		t.Errorf("nobody else gets the partition: %v", err)
	}
}

// The mode that a claim switched on stays on for ever.
func TestModeIsSwitchedOffOnceOthersAreGone(t *testing.T) {
	w := newWorld(t)
	ours := w.prepared("a", "", "mig-1b-00-1g10gb-4")
	theirs := w.byHand("2g.20gb", 0)
	w.unprepare(ours)
	w.must(w.Machine.DestroyPartition("0", theirs.ID))
	w.restart()
	if w.mig(0).Enabled {
		_, whole := w.m.Machine().Device("gpu-1b-00")
		t.Errorf("MIG mode that a claim switched on is on for ever; whole GPU offered: %t", whole)
	}
	// and even a later claim does not repair it
	b := w.prepared("b", "", "mig-1b-00-1g10gb-4")
	w.unprepare(b)
	if w.mig(0).Enabled {
		t.Error("nor did a later claim's release switch it off")
	}
}

// Record of a newer version.
func TestPartitionOfANewerVersionsRecordStaysHeld(t *testing.T) {
	w := newWorld(t)
	w.prepared("a", "", "mig-1b-00-1g10gb-4")
	w.edit("a", `"version":1`, `"version":2`)
	w.restart()
	d, ok := w.m.Machine().Device("mig-1b-00-1g10gb-4")
	if ok && d.Static() {
		t.Error("a claim's partition is published as static and free")
	}
	if _, whole := w.m.Machine().Device("gpu-1b-00"); !whole {
		t.Error("whole GPU vanished from the slices")
	}
}

// One record with an odd step.
func TestOddStepCostsNobodyElse(t *testing.T) {
	w := newWorld(t)
	w.prepared("a", "", "mig-1b-00-1g10gb-4")
	w.edit("a", `"kind":"gpu-instance"`, `"kind":7`)
	if err := w.Look(t.Context(), w.m); err != nil {
		t.Errorf("the node cannot be described: %v", err)
	}
	b := w.allocate("b", "", "mig-43-00-1g10gb-4")
	if _, err := w.m.Prepare(t.Context(), b); err != nil {
		t.Errorf("another GPU's claim: %v", err)
	}
}

// A record that is damaged and has no copy: what may be its partition is nobody else's
// Until the claim has ended.
func TestPartitionOfALostRecordIsHeldBack(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", "", "mig-1b-00-1g10gb-4")
	w.damage(w.record("a"), "{")
	w.must(os.RemoveAll(w.Dir + "/cdi"))
	for range 2 { // it is set aside after the first look
		w.restart()
		if d, offered := w.m.Machine().Device("mig-1b-00-1g10gb-4"); offered {
			t.Errorf("it is offered: %+v", d)
		}
		if faults := w.m.Machine().AllFaults(); len(faults) != 1 || !strings.Contains(faults[0].Message, "set-aside") {
			t.Errorf("told: %+v", faults)
		}
	}
	if _, err := w.m.Prepare(t.Context(), w.allocate("b", "", "mig-1b-00-1g10gb-4")); err == nil {
		t.Error("the running Pod's partition is given to another claim")
	}
	w.unprepare(c) // its Pods have ended: what is left is nobody's
	w.look()
	if d, offered := w.m.Machine().Device("mig-1b-00-1g10gb-4"); !offered || !d.Static() {
		t.Errorf("after the claim it is %+v, %t", d, offered)
	}
}

// Mending adopts, and the release destroys, what somebody else has made in its place.
func TestMendingDoesNotAdoptAnothers(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", "", "mig-1b-00-1g10gb-4")
	ours := w.mig(0).Instances[0].ID
	w.must(w.Machine.DestroyPartition("0", ours))
	w.byHand("1g.10gb", 0)
	theirs := w.byHand("1g.10gb", 4)
	t.Logf("ours was %d, theirs is %d", ours, theirs.ID)
	_, err := w.m.Mend(t.Context())
	w.must(err)
	w.unprepare(c)
	if left := w.mig(0).Instances; len(left) != 2 {
		t.Errorf("left: %+v", left)
	}
}

// Kill -9 just after the record, steps never begun; by hand since.
func TestRecoveryLeavesWhatWasNeverBegun(t *testing.T) {
	w := newWorld(t)
	w.GPUs = killer{w.GPUs}
	w.restart()
	c := w.allocate("a", "", "mig-1b-00-1g10gb-4", "mig-43-00-1g10gb-5")
	func() {
		defer func() { _ = recover() }()
		_, _ = w.m.Prepare(t.Context(), c) // dies in the first step
	}()
	w.GPUs = w.Machine.GPUs()
	w.must(w.Machine.SetMIGMode("1", true))
	start := 5
	_, err := w.Machine.MakePartition("1", "1g.10gb", &start)
	w.must(err)
	w.restart()
	if left := w.mig(1).Instances; len(left) != 1 {
		t.Errorf("the second partition's steps were never begun, and what somebody else made there is destroyed: %+v", left)
	}
}

type killer struct{ hardware.GPUs }

func (killer) SetMIGMode(context.Context, string, bool) error { panic("kill -9") }

// A GPU is whole again as soon as nobody has it open, by mending or for who wants it.
func TestOwedModeIsSwitchedOff(t *testing.T) {
	for name, whenFree := range map[string]func(*world){
		"by mending": func(w *world) {
			problems, err := w.m.Mend(w.t.Context())
			if w.must(err); len(problems) > 0 {
				w.t.Error(problems)
			}
		},
		"for who wants the GPU": func(w *world) {
			whole := w.prepared("whole", "", "gpu-1b-00")
			w.check("whole")
			w.unprepare(whole)
			_, err := w.m.Mend(w.t.Context())
			w.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Holders = func(gpu *machine.GPU, _ *int) ([]string, error) { return []string{"monitor of " + gpu.Name()}, nil }
			w.restart()
			c := w.prepared("a", "", "mig-1b-00-1g10gb-4")
			hold, err := w.Machine.Hold("0")
			w.must(err)
			w.unprepare(c)
			w.check()
			w.refused(w.allocate("whole", "", "gpu-1b-00"), failure.Busy, "monitor of gpu-1b-00")
			if _, err := w.m.Prepare(t.Context(), w.allocate("whole", "", "gpu-1b-00")); strings.Count(err.Error(), "monitor of gpu-1b-00") != 1 {
				t.Errorf("the holder is not named just once: %v", err)
			}
			if problems := w.restart(); len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "monitor of gpu-1b-00") {
				t.Errorf("told: %v", problems)
			}
			if r, err := w.m.Reconcile(t.Context()); err != nil || len(r.Released)+len(r.Problems)+r.Waiting > 0 {
				t.Errorf("reconciled: %+v, %v", r, err)
			}
			hold.Release()
			whenFree(w)
			w.check()
			if records, err := w.m.Records(); err != nil || len(records) > 0 || w.mig(0).Enabled {
				t.Errorf("on record: %+v, %v; MIG mode %t", records, err, w.mig(0).Enabled)
			}
		})
	}
}

// An interrupted preparation that cannot be finished leaves nothing.
func TestInterruptedPreparationThatFails(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", "", "mig-1b-00-1g10gb-4")
	text, err := os.ReadFile(w.record("a"))
	w.must(err)
	w.must(w.m.Unprepare(t.Context(), claimtest.Reference(c)))
	// As it was before the compute instance was made.
	before, _, found := strings.Cut(string(text), `,"outcome":{"gpuInstance":`)
	if !found {
		t.Fatalf("record %s", text)
	}
	w.damage(w.record("a"), before+"}]}")
	w.must(w.Machine.Fail("0", createGPU, simulator.Failure{Times: 1, Error: simulator.FailureUnknown}))
	if _, err := w.m.Prepare(t.Context(), c); err == nil {
		t.Error("prepared")
	}
	w.check()
}
