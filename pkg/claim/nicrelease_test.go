package claim_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// The Pod's end takes time: until its namespace has ended the claim is not released, and
// an event of the kernel's has the release go on at once.
func TestReleaseWaitsForTheNamespace(t *testing.T) {
	w := newWorld(t)
	a := w.started("a", "", w.first().Name())
	w.must(w.Machine.SealNamespace(claimtest.Namespace("a")))
	err := w.m.Unprepare(t.Context(), claimtest.Reference(a))
	if !errors.Is(err, failure.Busy) || len(w.Waits) != 1 || !strings.Contains(w.Waits[0].Error(), "nic-") {
		t.Fatalf("released: %v, told %v", err, w.Waits)
	}
	w.refused(w.allocate("b", "", w.first().Name()), failure.Conflict, "held for claim default/a")

	w.BusyPatience = time.Hour
	w.restart()
	done := make(chan error)
	told := make(chan struct{})
	w.m.Waiting = func(journal.Claim, error) { close(told) }
	go func() { done <- w.m.Unprepare(t.Context(), claimtest.Reference(a)) }()
	<-told
	w.must(w.End("a"))
	w.m.NICsChanged()
	w.must(<-done)
	w.check()
}

// While another interface has the NIC's name the claim is not released, and who it is is
// told.
func TestNameTaken(t *testing.T) {
	w := newWorld(t)
	a := w.started("a", nicConfig(`"interfaceName":"net1"`), w.first().Name())
	name := w.first().Netdevs[0].Name
	w.must(w.Machine.TakeName(name))
	w.must(w.End("a"))
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(a)); !errors.Is(err, failure.Busy) || !strings.Contains(err.Error(), name) {
		t.Fatalf("released: %v", err)
	}
	if problems := w.restart(); len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), name) {
		t.Errorf("after a restart: %v", problems)
	}
	w.must(w.Machine.GiveName(name))
	if problems := w.restart(); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	w.check()
}

// The agent was dead while the Pod went.
func TestPodGoesWithoutAgent(t *testing.T) {
	w := newWorld(t)
	w.started("a", "", w.first().Name())
	w.must(w.End("a"))
	w.must(w.Delete("a"))
	w.restart()
	w.check("a") // the kubelet has its time
	r, err := w.m.Reconcile(t.Context())
	for err == nil && len(r.Released) == 0 && len(r.Problems) == 0 {
		r, err = w.m.Reconcile(t.Context())
	}
	w.must(err)
	w.check()
}

func TestRebootLosesNICs(t *testing.T) {
	w := newWorld(t)
	a := w.started("a", "", w.first().Name())
	w.must(w.Machine.Reboot())
	w.must(os.RemoveAll(filepath.Join(w.Dir, "cdi")))
	w.restart()
	w.prepare(a)
	w.check("a")
	w.unprepare(a)
	w.check()
}

// The record is damaged while the NIC is in the Pod: the copy brings it home.
func TestDamagedRecordOfNIC(t *testing.T) {
	w := newWorld(t)
	a := w.started("a", "", w.first().Name())
	w.damage(w.record("a"), "{")
	w.look()
	if now := w.first(); len(now.Netdevs) == 0 || !now.Health.OK() {
		t.Errorf("published as %+v", now)
	}
	w.unprepare(a)
	w.check()
}

// restless is NICs of which one does not come home, while events about NICs never end.
type restless struct {
	hardware.NICs
	m     **claim.Manager
	tries int
}

func (r *restless) BringHome(context.Context, machine.NICHome) error {
	r.tries++
	(*r.m).NICsChanged()
	return failure.New(failure.Busy, "it is on its way")
}

// However many events there are, a release that waits tries but a few times.
func TestEventsInCrowds(t *testing.T) {
	w := newWorld(t)
	r := &restless{NICs: w.Machine.NICs(), m: &w.m}
	w.World.NICs, w.BusyPatience = r, 300*time.Millisecond
	w.restart()
	a := w.prepared("a", "", w.first().Name())
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(a)); !errors.Is(err, failure.Busy) || r.tries < 2 || r.tries > 7 {
		t.Errorf("%d tries, %v", r.tries, err)
	}
}

func TestNICVanishes(t *testing.T) {
	t.Run("before it is prepared", func(t *testing.T) {
		w := newWorld(t)
		a := w.allocate("a", "", w.first().Name())
		w.must(w.Machine.Unplug(w.first().Address.String()))
		w.refused(a, failure.Absent, "delete the Pod")
		w.check()
	})
	t.Run("while a Pod has it", func(t *testing.T) {
		w := newWorld(t)
		a := w.started("a", "", w.first().Name())
		w.must(w.Machine.Unplug(w.first().Address.String()))
		w.refused(a, failure.Absent, "delete the Pod")
		w.unprepare(a)
		w.must(w.SettleNICs(t.Context()))
		w.check()
	})
	t.Run("taken by somebody", func(t *testing.T) {
		w := newWorld(t)
		a := w.allocate("a", "", w.first().Name())
		home, err := w.NICs.NICHome(t.Context(), w.first().Address)
		w.must(err)
		w.must(w.Machine.MoveNIC(hardware.NICMove{Home: home}, "others"))
		w.refused(a, failure.Conflict, "others", "give it back")
		w.look()
		w.refused(a, failure.Busy, "no claim has it")
		w.must(w.NICs.BringHome(t.Context(), home))
		w.look()
		w.prepare(a)
		w.check("a")
	})
}

// Where nobody looks after NICs any more, what is on record of them stays until somebody
// does.
func TestWithoutNICs(t *testing.T) {
	w := newWorld(t)
	a := w.started("a", "", w.first().Name())
	w.m.NICs = claim.New(claim.Config{}).NICs
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(a)); !errors.Is(err, failure.Unsupported) || !strings.Contains(err.Error(), "nics.enabled") {
		t.Errorf("error %v", err)
	}
	w.refused(w.allocate("b", "", w.nic(1).Name()), failure.Unsupported, "claim GPUs alone")
	w.restart()
	w.check()
}
