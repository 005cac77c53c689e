package mps_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// TestAtOnce: of 48 that ask at once, one starts the daemon; and where it cannot be
// started, all are told and nothing is left.
func TestAtOnce(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	program := filepath.Join(w.machine.Root(), "usr/bin/nvidia-cuda-mps-control")
	if err := os.Rename(program, program+".away"); err != nil {
		t.Fatal(err)
	}
	for _, works := range []bool{false, true} {
		if works {
			if err := os.Rename(program+".away", program); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(program, []byte("no program"), 0o755); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 48 {
			all.Go(func() {
				if _, err := w.StartMPS(t.Context(), w.uuids(0)); (err == nil) != works {
					t.Errorf("works: %t, %v", works, err)
				}
			})
		}
		all.Wait()
		if !works {
			w.nothing(t)
		}
	}
	state, err := w.machine.State()
	if err != nil || state.Runs["nvidia-cuda-mps-control"] != 1 {
		t.Errorf("control daemons were started: %v, %v", state.Runs, err)
	}
}

// TestAtOnceOverAll: shares that arrive at once over eight GPUs have one daemon started
// for each, once.
func TestAtOnceOverAll(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	for range 3 {
		before, err := w.machine.State()
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 8 * 48 {
			all.Go(func() {
				if _, err := w.StartMPS(t.Context(), w.uuids(i%8)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		after, err := w.machine.State()
		if n := after.Runs["nvidia-cuda-mps-control"] - before.Runs["nvidia-cuda-mps-control"]; n != 8 || err != nil {
			t.Errorf("%d control daemons were started, %v, want 8", n, err)
		}
		for gpu := range 8 {
			all.Go(func() {
				if err := w.StopMPS(t.Context(), w.uuids(gpu)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		w.nothing(t)
	}
}

// TestRaces: starts and stops of one set and of others that overlap it, at once.
func TestRaces(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	sets := [][]string{w.uuids(0), w.uuids(1), w.uuids(0, 1), w.uuids(2)}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 4 {
				devices := sets[(i+j)%len(sets)]
				if _, err := w.StartMPS(t.Context(), devices); err != nil && !errors.Is(err, failure.Conflict) {
					t.Error(err)
				}
				if err := w.StopMPS(t.Context(), devices); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	w.nothing(t)
	w.start(t, sets[2])
}

// TestCallerGone: a start whose caller's time is over comes to its end.
func TestCallerGone(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		_, err := w.StartMPS(ctx, w.uuids(0))
		if err == nil {
			break // it was answered from memory
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if err := w.StopMPS(t.Context(), w.uuids(0)); err != nil {
		t.Error(err)
	}
	w.nothing(t)
}
