package claim_test

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func TestAmpere(t *testing.T) {
	w := newWorldOf(t, "dgx-a100")
	label := w.m.Machine().GPUs[0].Address.Label()
	if _, offered := w.m.Machine().Device("mig-" + label + "-1g10gb-4"); offered {
		t.Fatal("a partition is offered while MIG mode is off")
	}
	w.must(w.Machine.SetMIGMode("0", true))
	w.must(w.Machine.Reset("0"))
	w.must(w.Settle(t.Context()))
	w.look()
	c := w.prepared("a", "", "mig-"+label+"-1g10gb-4")
	w.check("a")
	w.unprepare(c)
	w.check()

	w.must(w.Machine.SetMIGMode("0", false))
	w.must(w.Machine.Reset("0"))
	w.must(w.Settle(t.Context()))
	w.refused(c, failure.Conflict, "switched off by hand")
	w.check()
}

// What a partition was made in stays with whoever else is on the GPU, and is published
// as theirs from the start.
func TestModeStaysWhileOthersHavePartitions(t *testing.T) {
	w := newWorld(t)
	ours := w.prepared("a", "", "mig-1b-00-1g10gb-4")
	w.byHand("2g.20gb", 0)
	w.look()
	before := *w.m.Machine()
	w.unprepare(ours)
	w.look()
	if now := w.m.Machine(); !now.Equal(&before) {
		t.Errorf("the machine is described as\n%+v, with the claim\n%+v", now.GPUs[0], before.GPUs[0])
	}
	if mig := w.mig(0); !mig.Enabled || len(mig.Instances) != 1 {
		t.Errorf("left: enabled %t, %+v", mig.Enabled, mig.Instances)
	}
}

// A driver that is loaded anew has not the mode that was switched on by hand: it comes
// back with the claims that need it, old or new, and goes with them.
func TestModeByHandIsMadeAgain(t *testing.T) {
	for _, newcomer := range []bool{false, true} {
		w := newWorld(t)
		w.must(w.Machine.SetMIGMode("0", true))
		w.restart()
		c, other := w.allocate("a", "", "mig-1b-00-1g10gb-4"), w.allocate("b", "", "mig-1b-00-1g10gb-5")
		w.prepare(c)
		for _, to := range []simulator.Driver{simulator.DriverUnloaded, simulator.DriverLoaded} {
			w.must(w.Machine.SetDriver(to))
		}
		w.must(w.Settle(t.Context()))
		w.look()
		before := *w.m.Machine()
		if newcomer {
			w.prepare(other)
		}
		if problems, err := w.m.Mend(t.Context()); err != nil || len(problems) > 0 {
			t.Fatalf("%v, %v", problems, err)
		}
		w.unprepare(other)
		w.check("a")
		w.look()
		if now := w.m.Machine(); !now.Equal(&before) {
			t.Errorf("the machine is described as\n%+v, after the reload\n%+v", now.GPUs[0], before.GPUs[0])
		}
		w.unprepare(c)
		w.check()
	}
}

// The mode is switched off with the last claim, though somebody else had a partition of
// the GPU meanwhile.
func TestModeIsSwitchedOffAfterOthers(t *testing.T) {
	w := newWorld(t)
	first, last := w.allocate("first", "", "mig-1b-00-1g10gb-4"), w.allocate("last", "", "mig-1b-00-1g10gb-5")
	w.prepare(first)
	theirs := w.byHand("2g.20gb", 0)
	w.look()
	w.prepare(last)
	w.must(w.Machine.DestroyPartition("0", theirs.ID))
	w.unprepare(first)
	w.unprepare(last)
	w.check()
}
