package mps_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// TestTimeSliceForks: nvidia-smi runs to learn what is set, and when that changes.
func TestTimeSliceForks(t *testing.T) {
	w := newWorld(t, "l40s")
	gpu := w.uuids(0)[0]
	runs := func(want int) {
		t.Helper()
		state, err := w.machine.State()
		if err != nil || state.Runs["nvidia-smi compute-policy"] != want {
			t.Errorf("nvidia-smi ran: %v, %v, want %d times", state.Runs, err, want)
		}
	}
	set := func(to machine.TimeSlice) {
		t.Helper()
		if err := w.SetTimeSlice(t.Context(), gpu, to); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		set(machine.TimeSliceDefault)
	}
	runs(1)
	for range 3 {
		set(machine.TimeSliceLong)
		if got, err := w.TimeSlice(t.Context(), gpu); err != nil || got != machine.TimeSliceLong {
			t.Errorf("%s, %v", got, err)
		}
	}
	runs(3) // and it was read back
	w.reopen(t)
	set(machine.TimeSliceLong)
	runs(4)
}

func TestTimeSliceOf(t *testing.T) {
	w := newWorld(t, "l40s")
	for name, class := range map[string]error{"MIG-a": failure.Unsupported, "0": failure.Invalid, "GPU-unknown": failure.Absent} {
		if err := w.SetTimeSlice(t.Context(), name, machine.TimeSliceLong); !errors.Is(err, class) {
			t.Errorf("%s: %v, want %v", name, err, class)
		}
	}
	if err := os.Remove(filepath.Join(w.machine.Root(), "usr/bin/nvidia-smi")); err != nil {
		t.Fatal(err)
	}
	_, err := w.TimeSlice(t.Context(), w.uuids(0)[0])
	if !errors.Is(err, failure.Unreachable) || !strings.Contains(err.Error(), "nvidia-smi") || !strings.Contains(err.Error(), "--driver-root") {
		t.Errorf("without nvidia-smi: %v", err)
	}
}

// TestTimeSliceChangedByOthers: a reload of the driver, say, is noticed, and mended.
func TestTimeSliceChangedByOthers(t *testing.T) {
	w := newWorld(t, "l40s")
	gpu := w.uuids(0)[0]
	for range 2 {
		if err := w.SetTimeSlice(t.Context(), gpu, machine.TimeSliceLong); err != nil {
			t.Fatal(err)
		}
		state, err := w.machine.State()
		if err != nil || state.GPU(0).TimeSliceOf() != machine.TimeSliceLong {
			t.Errorf("it is %s, %v", state.GPU(0).TimeSliceOf(), err)
		}
		if err := w.machine.SetTimeSlice("0", machine.TimeSliceDefault); err != nil {
			t.Fatal(err)
		}
		w.AgeTimeSlice(gpu)
	}
}
