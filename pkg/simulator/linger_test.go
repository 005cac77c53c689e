package simulator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// TestLinger: a call takes its time, or until that is lifted or its context ends.
func TestLinger(t *testing.T) {
	const call = "nvmlDeviceGetName"
	m := simulatortest.New(t, "dgx-h100")
	linger := func(ctx context.Context) <-chan error {
		state, err := m.State()
		must(t, err)
		ended := make(chan error, 1)
		go func() { ended <- m.Linger(ctx, state.GPU(0).DelayOf(call)) }()
		return ended
	}
	stays := func(call <-chan error) {
		t.Helper()
		select {
		case err := <-call:
			t.Fatalf("it is over: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	must(t, <-linger(t.Context()))

	must(t, m.Slow("0", call, 10*time.Millisecond))
	began := time.Now()
	must(t, <-linger(t.Context()))
	if took := time.Since(began); took < 10*time.Millisecond {
		t.Errorf("it is over after %s", took)
	}

	must(t, m.Slow("0", call, time.Hour))
	lifted := linger(t.Context())
	ctx, end := context.WithCancel(t.Context())
	ended := linger(ctx)
	stays(lifted)
	must(t, m.Slow("1", call, time.Hour)) // nothing to it
	must(t, m.RaiseXid("0", 31))
	stays(lifted)
	stays(ended)
	end()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	must(t, m.Slow("0", call, 0))
	select {
	case err := <-lifted:
		must(t, err)
	case <-time.After(patiencetest.Limit):
		t.Error("it goes on when its delay is lifted")
	}
	if err := m.Linger(ctx, func(*simulator.State) time.Duration { return 0 }); !errors.Is(err, context.Canceled) {
		t.Errorf("a call without a delay, whose context has ended: %v", err)
	}
}
