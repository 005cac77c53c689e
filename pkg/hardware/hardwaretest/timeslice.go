package hardwaretest

import (
	"errors"
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func testTimeSlice(t *testing.T, make func(*testing.T, string) SharingFixture) {
	f := make(t, "l40s")
	gpus := f.uuids(1, 2)
	want := func(gpu string, want machine.TimeSlice) {
		t.Helper()
		if got, err := f.Sharing.TimeSlice(t.Context(), gpu); err != nil || got != want {
			t.Errorf("time slice of %s: %s, %v, want %s", gpu, got, err, want)
		}
	}
	want(gpus[0], machine.TimeSliceDefault)
	for _, to := range append(slices.Clone(machine.TimeSlices), machine.TimeSliceShort, machine.TimeSliceShort) {
		must(t, f.Sharing.SetTimeSlice(t.Context(), gpus[0], to))
		want(gpus[0], to)
		state, err := f.Machine.State()
		must(t, err)
		if got := state.GPU(1).TimeSliceOf(); got != to {
			t.Errorf("the machine has %s, want %s", got, to)
		}
	}
	want(gpus[1], machine.TimeSliceDefault)
}

func testTimeSliceErrors(t *testing.T, make func(*testing.T, string) SharingFixture) {
	f := make(t, "l40s")
	elsewhere := simulator.UUID("elsewhere", machine.Address{})
	if err := f.Sharing.SetTimeSlice(t.Context(), f.uuids(0)[0], "Endless"); !errors.Is(err, failure.Invalid) {
		t.Errorf("an unknown time slice: %v", err)
	}
	if err := f.Sharing.SetTimeSlice(t.Context(), elsewhere, machine.TimeSliceLong); !errors.Is(err, failure.Absent) {
		t.Errorf("setting one of no GPU: %v", err)
	}
	if _, err := f.Sharing.TimeSlice(t.Context(), elsewhere); !errors.Is(err, failure.Absent) {
		t.Errorf("reading one of no GPU: %v", err)
	}
	must(t, f.Machine.Inject("1", simulator.FaultLost))
	if err := f.Sharing.SetTimeSlice(t.Context(), f.uuids(1)[0], machine.TimeSliceLong); !errors.Is(err, failure.Absent) {
		t.Errorf("setting one of a lost GPU: %v", err)
	}
}
