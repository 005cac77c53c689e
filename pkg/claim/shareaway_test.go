package claim_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func TestFailedShareIsTakenBackInTheSameCall(t *testing.T) {
	for _, call := range []string{simulator.CallStartMPS, simulator.CallMakeNamespace, "nvmlDeviceSetComputeMode"} {
		w := newWorldOf(t, "mps-v3")
		share := mpsShare("1")
		share.Device = "mps-" + w.m.Machine().GPUs[0].Address.Label()
		c := w.share("a", "", share)
		w.must(w.Machine.Fail("0", call, simulator.Failure{Times: 1, Error: simulator.FailureUnknown}))
		if _, err := w.m.Prepare(t.Context(), c); err == nil {
			t.Fatalf("%s failed, and the share is prepared", call)
		}
		w.check()
		w.prepare(c)
		w.check("a")
	}
}

// away is sharing of which nobody takes care.
type away struct{ hardware.Sharing }

var errAway = failure.New(failure.Unreachable, "dovetail-mps does not answer")

func (away) StartMPS(context.Context, []string) (hardware.MPSDaemon, error) {
	return hardware.MPSDaemon{}, errAway
}

func (away) StopMPS(context.Context, []string) error { return errAway }

func TestSharesWaitForWhoLooksAfterThem(t *testing.T) {
	w := newWorld(t)
	there := w.Sharing
	w.Sharing = away{there}
	w.restart()
	c := w.share("a", "", mpsShare("1"))
	w.refused(c, failure.Unreachable, "dovetail-mps does not answer")
	w.check() // nothing waits for what may never come
	if records, err := w.m.Records(); err != nil || len(records) != 1 || records[0].Entry.Claim.Name != "mps of gpu-1b-00" {
		t.Errorf("on record: %+v, %v", records, err)
	}
	w.Sharing = there
	// It had been started after all.
	_, err := w.Sharing.StartMPS(t.Context(), []string{w.m.Machine().GPUs[0].UUID})
	w.must(err)
	w.restart()
	if d := w.daemons(); len(d) > 0 {
		t.Errorf("left: %+v", d)
	}
	w.prepare(c)
	w.Sharing = away{there}
	w.restart()
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(c)); !errors.Is(err, failure.Unreachable) || len(w.Waits) != 1 {
		t.Errorf("release: %v, told %v", err, w.Waits)
	}
	w.Sharing = there
	w.restart()
	w.check()
}
