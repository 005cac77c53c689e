package claim_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/mps"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// onGPU is a share of the i-th GPU.
func (w *world) onGPU(i int, request, id, memory string) claimtest.Share {
	return claimtest.Share{Request: request, Device: "mps-" + w.m.Machine().GPUs[i].Address.Label(), ID: id, Memory: memory, Compute: 10}
}

// A container that names no request has all of them, and the pipe directory of one: its
// namespace has limits for all GPUs.
func TestNamespacesLimitAllGPUsOfAClaim(t *testing.T) {
	w := newWorldOf(t, "mps-v3")
	w.prepare(w.share("a", "", w.onGPU(0, "x", "1", "2Gi"), w.onGPU(1, "y", "2", "3Gi")))
	for name, limits := range w.daemons()[0].Namespaces {
		for i, want := range []uint64{2 << 30, 3 << 30} {
			if got := limits.Memory[w.m.Machine().GPUs[i].UUID]; got != want {
				t.Errorf("namespace %s has a limit of %d on GPU %d, want %d", name, got, i, want)
			}
		}
	}
	w.check("a")
}

// Several shares of one GPU in one request add up, whatever the protocol.
func TestSharesOfOneRequestAddUp(t *testing.T) {
	for _, name := range []string{"dgx-h100", "mps-v3"} {
		w := newWorldOf(t, name)
		c := w.share("a", "", w.onGPU(0, "r", "1", "2Gi"), w.onGPU(0, "r", "2", "3Gi"))
		w.prepare(c)
		if namespaces := w.daemons()[0].Namespaces; len(namespaces) > 0 {
			limits := namespaces["share-1"]
			if limits.Memory[w.m.Machine().GPUs[0].UUID] != 5<<30 || limits.ThreadPercentage != 20 {
				t.Errorf("namespaces %+v", namespaces)
			}
			continue
		}
		for i := range 2 {
			w.hasEnv(c, i, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=5120M", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=20")
		}
	}
}

func TestIntervalIsLeftWithoutAnybodyWhoLooksAfterIt(t *testing.T) {
	w := newWorld(t)
	c := w.share("a", gpuConfig(`"sharing":{"timeSlicing":{"interval":"Long"}}`), claimtest.Share{Request: "r", Device: "timeslice-1b-00", ID: "1", Memory: "1Gi"})
	w.prepare(c)
	w.Sharing = mps.None{}
	w.restart()
	w.unprepare(c)
	if records, err := w.m.Records(); err != nil || len(records) > 0 {
		t.Errorf("on record: %+v, %v", records, err)
	}
}

// dovetail-mps is taken off the node while a claim has a share, and comes back.
func TestDaemonIsStoppedByWhoComesBack(t *testing.T) {
	w := newWorld(t)
	there := w.Sharing
	c := w.share("a", "", mpsShare("1"))
	w.prepare(c)
	w.Sharing = mps.None{}
	w.restart()
	w.unprepare(c)
	w.Sharing = there
	if problems := w.restart(); len(problems) > 0 {
		t.Error(problems)
	}
	w.check()
	if records, err := w.m.Records(); err != nil || len(records) > 0 {
		t.Errorf("on record: %+v, %v", records, err)
	}
}

// lost is dovetail-mps that is killed when it has started a control daemon.
type lost struct{ hardware.Sharing }

func (l lost) StartMPS(ctx context.Context, devices []string) (hardware.MPSDaemon, error) {
	if _, err := l.Sharing.StartMPS(ctx, devices); err != nil {
		return hardware.MPSDaemon{}, err
	}
	return hardware.MPSDaemon{}, errAway
}

func (lost) StopMPS(context.Context, []string) error { return errAway }

func TestDaemonOfALostAnswerIsStopped(t *testing.T) {
	w := newWorld(t)
	there := w.Sharing
	w.Sharing = lost{there}
	w.restart()
	w.refused(w.share("a", "", mpsShare("1")), failure.Unreachable)
	w.Sharing = there
	w.restart()
	w.check()
	if d := w.daemons(); len(d) > 0 {
		t.Errorf("left: %+v", d)
	}
}

func TestIntervalsWithinAClaim(t *testing.T) {
	w := newWorld(t)
	turn := func(request, id string) claimtest.Share {
		return claimtest.Share{Request: request, Device: "timeslice-1b-00", ID: id, Memory: "1Gi"}
	}
	c := w.share("a", gpuConfig(`"sharing":{"timeSlicing":{"interval":"Long"}}`), turn("r", "1"), turn("s", "2"))
	config := c.Status.Allocation.Devices.Config
	other := *config[0].DeepCopy()
	config[0].Requests, other.Requests = []string{"r"}, []string{"s"}
	other.Opaque.Parameters.Raw = []byte(gpuConfig(`"sharing":{"timeSlicing":{"interval":"Short"}}`))
	c.Status.Allocation.Devices.Config = append(config, other)
	w.must(w.Store(c))
	w.refused(c, failure.Invalid, "Long for request r", "Short for request s")
	w.check()
}

// Of a GPU that does not say how much memory it has nothing is limited, and that is said.
func TestShareOfUnknownMemory(t *testing.T) {
	w := newWorldOf(t, "mps-v3")
	if d := w.prepare(w.share("a", "", w.onGPU(0, "r", "1", "0"))); d[0].Enforcement != machine.EnforcementNone {
		t.Errorf("enforcement %s", d[0].Enforcement)
	}
	w.refused(w.share("b", gpuConfig(`"enforcement":"Strict"`), w.onGPU(0, "r", "2", "0")), failure.Unsupported, "does not say how much memory it has", "the nearest that works is None")
}

// A GPU has one control daemon: who has another set of GPUs is refused with who has it.
func TestSetsThatOverlap(t *testing.T) {
	w := newWorld(t)
	one := w.share("one", "", mpsShare("1"))
	both := w.share("both", "", w.onGPU(0, "r", "2", "1Gi"), w.onGPU(1, "r", "3", "1Gi"))
	w.prepare(one)
	w.refused(both, failure.Conflict, "claim default/one", "docs/operations.md")
	w.unprepare(one)
	w.prepare(both)
	w.refused(one, failure.Conflict, "claim default/both")
	w.check("both")
}

// What is owed is forgotten with the boot that it is of.
func TestDebtOfAnEarlierBoot(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", "", "mig-1b-00-1g10gb-4")
	w.must(w.Machine.Fail("0", setMode, simulator.Failure{Times: 5, Error: simulator.FailureInUse}))
	w.unprepare(c)
	owes := func() bool {
		records, err := w.m.Records()
		w.must(err)
		return slices.ContainsFunc(records, func(r journal.Record) bool { return strings.HasPrefix(r.UID, "owed-") })
	}
	if !owes() {
		t.Fatal("nothing is owed")
	}
	w.must(w.Machine.Reboot())
	w.restart()
	if owes() {
		t.Error("it is owed after a reboot, too")
	}
}
