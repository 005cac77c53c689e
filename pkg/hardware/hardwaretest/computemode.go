package hardwaretest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func testComputeMode(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	uuid := f.Machine.Spec().GPUs[3].UUID
	for _, mode := range []machine.ComputeMode{
		machine.ComputeModeDefault, machine.ComputeModeExclusiveProcess, machine.ComputeModeExclusiveProcess,
		machine.ComputeModeProhibited, machine.ComputeModeDefault,
	} {
		must(t, f.GPUs.SetComputeMode(t.Context(), uuid, mode))
		got, err := f.GPUs.ComputeMode(t.Context(), uuid)
		if err != nil || got != mode {
			t.Errorf("compute mode is %q, %v, want %q", got, err, mode)
		}
		state, err := f.Machine.State()
		must(t, err)
		for i := range state.GPUs {
			want := machine.ComputeModeDefault
			if i == 3 {
				want = mode
			}
			if got := state.GPUs[i].ComputeMode; got != want {
				t.Errorf("GPU %d has compute mode %q, want %q", i, got, want)
			}
		}
	}
}

func testComputeModeErrors(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "broken")
	uuid := func(i int) string { return f.Machine.Spec().GPUs[i].UUID }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		uuid string
		want error
	}{
		"not there":      {t.Context(), "GPU-00000000-0000-0000-0000-000000000000", failure.Absent},
		"lost":           {t.Context(), uuid(2), failure.Absent},
		"reset required": {t.Context(), uuid(3), failure.Busy},
		"context ended":  {ended, uuid(0), context.Canceled},
	} {
		if _, err := f.GPUs.ComputeMode(c.ctx, c.uuid); !errors.Is(err, c.want) {
			t.Errorf("reading, %s: %v", name, err)
		}
		if err := f.GPUs.SetComputeMode(c.ctx, c.uuid, machine.ComputeModeDefault); !errors.Is(err, c.want) {
			t.Errorf("setting, %s: %v", name, err)
		}
	}
	if err := f.GPUs.SetComputeMode(t.Context(), uuid(0), "Sometimes"); !errors.Is(err, failure.Invalid) {
		t.Errorf("an unknown mode: %v", err)
	}
}

// testSlowGPU: while one GPU takes its time, the others answer.
func testSlowGPU(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	spec := f.Machine.Spec()
	must(t, f.Machine.Slow("0", simulator.AnyCall, time.Hour))
	slow := beside(func() error {
		_, err := f.GPUs.ComputeMode(t.Context(), spec.GPUs[0].UUID)
		return err
	})
	for _, g := range spec.GPUs[1:] {
		if _, err := f.GPUs.ComputeMode(t.Context(), g.UUID); err != nil {
			t.Error(err)
		}
	}
	select {
	case err := <-slow:
		t.Fatalf("the slow GPU answered (%v) before the others, which waited for it", err)
	default:
	}
	must(t, f.Machine.Slow("0", simulator.AnyCall, 0))
	must(t, <-slow)
}

// beside runs f beside the test.
func beside(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

// testConcurrency is for the race detector: calls from everywhere while the
// machine changes.
func testConcurrency(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "mixed")
	spec := f.Machine.Spec()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 20 {
				d, err := f.GPUs.Describe(t.Context())
				if err != nil || len(d.GPUs)+len(d.Faults) < 4 {
					t.Errorf("%d GPUs and %d faults, %v", len(d.GPUs), len(d.Faults), err)
				}
				mode := machine.ComputeModeDefault
				if i%2 == 0 {
					mode = machine.ComputeModeExclusiveProcess
				}
				if err := f.GPUs.SetComputeMode(t.Context(), spec.GPUs[1].UUID, mode); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		must(t, f.Machine.Inject("3", simulator.FaultLost))
		must(t, f.Machine.Restore("3", simulator.FaultLost))
	}
	all.Wait()
}
