package claim_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// A driver that is loaded anew has lost what was set, and has other files.
func TestMendAfterAReload(t *testing.T) {
	w := newWorld(t)
	w.prepare(w.allocate("a", claimtest.Exclusive, "gpu-1b-00"))
	if err := w.Machine.SetComputeMode("0", machine.ComputeModeDefault); err != nil {
		t.Fatal(err)
	}
	store, err := cdi.NewStore(filepath.Join(w.Dir, "cdi"), filepath.Join(w.Dir, "nccl"), newDriver{w.Edits})
	if err != nil {
		t.Fatal(err)
	}
	w.m.CDI = store
	if problems, err := w.m.Mend(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	w.check("a")
	content, err := os.ReadFile(w.specification("a"))
	if err != nil || !strings.Contains(string(content), "DRIVER=new") {
		t.Errorf("specification %s, %v", content, err)
	}
}

type newDriver struct{ cdi.Edits }

// The agent that is being replaced may be in the middle of a call, on a GPU that
// takes its time: the new one starts nevertheless, and leaves that claim alone.
func TestRecoveryLeavesTheOtherAgentsWork(t *testing.T) {
	w := newWorld(t)
	old := claimtest.Hold(w.GPUs)
	w.GPUs = old
	w.restart()
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	prepared := make(chan error)
	go func() {
		_, err := w.m.Prepare(t.Context(), c)
		prepared <- err
	}()
	<-old.Entered
	if _, problems, err := w.Manager(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the new agent: %v, %v", problems, err)
	}
	close(old.Let)
	if err := <-prepared; err != nil {
		t.Error(err)
	}
	w.check("a")
}

func TestReconcileReleasesWhatIsGone(t *testing.T) {
	w := newWorld(t)
	kept := w.allocate("kept", "", "gpu-1b-00")
	gone := w.allocate("gone", claimtest.Exclusive, "gpu-43-00")
	replaced := w.allocate("replaced", "", "gpu-52-00")
	free := w.allocate("deallocated", "", "gpu-61-00")
	for _, c := range []*resourceapi.ResourceClaim{kept, gone, replaced, free} {
		w.prepare(c)
	}
	if err := w.Delete("gone"); err != nil {
		t.Fatal(err)
	}
	replaced.UID = "another"
	free.Status.Allocation = nil
	for _, c := range []*resourceapi.ResourceClaim{replaced, free} {
		if err := w.Store(c); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	r, err := w.m.Reconcile(t.Context())
	if err != nil || len(r.Problems) > 0 || len(r.Released) != 3 || r.Waiting != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	w.check("kept")
}

// A claim deleted by force can be survived by its Pod, which the kubelet knows.
func TestReconcileLeavesWhatPodsStillHave(t *testing.T) {
	w := newWorld(t)
	w.prepared("gone", claimtest.Exclusive, "gpu-1b-00")
	if err := w.Delete("gone"); err != nil {
		t.Fatal(err)
	}
	w.InUse = map[string]bool{"gone": true}
	w.restart()
	reconcile := func(released, waiting int) {
		t.Helper()
		r, err := w.m.Reconcile(t.Context())
		if err != nil || len(r.Problems) > 0 || len(r.Released) != released || r.Waiting != waiting {
			t.Errorf("%+v, %v; want %d released, %d waiting", r, err, released, waiting)
		}
	}
	reconcile(0, 1)
	w.refused(w.allocate("next", "", "gpu-1b-00"), failure.Conflict, "default/gone")
	w.check("gone")

	w.InUse["gone"] = false
	w.m.Patience = time.Hour // the kubelet has its time first
	reconcile(0, 1)
	w.m.Patience = 0
	reconcile(1, 0)
	w.check()
}

// A claim that outlives its Pods can be allocated anew, here or elsewhere.
func TestClaimAllocatedAnew(t *testing.T) {
	w := newWorld(t)
	w.prepared("a", claimtest.Exclusive, "gpu-1b-00")
	again := w.allocate("a", "", "gpu-43-00")
	if devices := w.prepare(again); len(devices) != 1 || devices[0].Name != "gpu-43-00" {
		t.Errorf("devices %+v", devices)
	}
	w.check("a")

	again.Status.Allocation.Devices.Results[0].Pool = "node-2"
	if err := w.Store(again); err != nil {
		t.Fatal(err)
	}
	if r, err := w.m.Reconcile(t.Context()); err != nil || len(r.Released) != 1 {
		t.Errorf("allocated on another node: %+v, %v", r, err)
	}
	w.check()
}

// A reboot ends what a record stands for; it can also bring back records that were
// removed just before a power cut.
func TestRecordsOfAnEarlierBootHoldNothing(t *testing.T) {
	w := newWorld(t)
	w.prepared("old", claimtest.Exclusive, "gpu-1b-00")
	if err := errors.Join(w.Machine.Reboot(), os.RemoveAll(filepath.Join(w.Dir, "cdi"))); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.prepare(w.allocate("new", "", "gpu-1b-00"))
	if err := w.Delete("old"); err != nil {
		t.Fatal(err)
	}
	if r, err := w.m.Reconcile(t.Context()); err != nil || len(r.Released) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	w.check("new")
}

// Another GPU in the same slot has the same name.
func TestExchangedGPU(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", "", "gpu-1b-00")
	now, err := w.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now.GPUs[0].UUID = "GPU-new"
	w.m.Machine = func() *machine.Machine { return now }
	w.m.GPUs = renamed{w.GPUs}
	if devices := w.prepare(c); devices[0].UUID != "GPU-new" {
		t.Errorf("devices %+v", devices)
	}
}

// renamed answers for a GPU that the simulator does not know.
type renamed struct{ hardware.GPUs }
