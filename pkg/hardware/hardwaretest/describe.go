package hardwaretest

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func testEveryMachine(t *testing.T, make func(*testing.T, string) Fixture) {
	for _, name := range machines.WithGPUs() {
		t.Run(name, func(t *testing.T) {
			f := make(t, name)
			checkDescription(t, f, describe(t, f))
		})
	}
}

// checkDescription compares with what the machine is, GPU by GPU.
func checkDescription(t *testing.T, f Fixture, d hardware.Description) {
	t.Helper()
	state, err := f.Machine.State()
	must(t, err)
	if d.Driver != state.Spec.Driver {
		t.Errorf("driver %+v, want %+v", d.Driver, state.Spec.Driver)
	}
	var wanted []machine.GPU
	faults := map[machine.FaultKind]int{}
	for i := range state.GPUs {
		g := state.GPU(i)
		switch {
		case g.Has(simulator.FaultLost):
			faults[machine.FaultLost]++
			continue
		case g.Has(simulator.FaultResetRequired):
			faults[machine.FaultResetRequired]++
			continue
		case g.Has(simulator.FaultMemoryNotSupported):
			faults[machine.FaultMemoryUnknown]++
		}
		wanted = append(wanted, g.Describe())
	}
	if len(d.GPUs) != len(wanted) {
		t.Fatalf("%d GPUs are described, want %d", len(d.GPUs), len(wanted))
	}
	for i, want := range wanted {
		got := d.GPUs[i]
		got.Health.Message, want.Health.Message = "", "" // words are the implementation's
		if !reflect.DeepEqual(got, want) {
			t.Errorf("GPU %d is described as\n%+v, want\n%+v", i, got, want)
		}
	}
	for _, fault := range d.Faults {
		faults[fault.Kind]--
		_, err := machine.ParseAddress(fault.Device)
		if err != nil && !strings.HasPrefix(fault.Device, "index ") {
			t.Errorf("fault of %q, which is neither an address nor an index", fault.Device)
		}
		if fault.Message == "" {
			t.Errorf("fault of %s without a word", fault.Device)
		}
	}
	for kind, n := range faults {
		if n != 0 {
			t.Errorf("%d faults of kind %q too few: %+v", n, kind, d.Faults)
		}
	}
}

// faulty gives the second GPU a fault, and takes it away.
func faulty(t *testing.T, f Fixture, fault simulator.Fault, kind machine.FaultKind, described bool, heal func() error) {
	t.Helper()
	before := describe(t, f)
	victim := before.GPUs[1]
	must(t, f.Machine.Inject(victim.UUID, fault))
	d := describe(t, f)
	checkDescription(t, f, d)
	has := slices.ContainsFunc(d.GPUs, func(g machine.GPU) bool { return g.UUID == victim.UUID })
	if has != described {
		t.Errorf("the GPU is described: %t, want %t", has, described)
	}
	if len(d.Faults) != 1 || d.Faults[0].Kind != kind || d.Faults[0].Device != victim.Address.String() {
		t.Errorf("faults %+v, want one of kind %q of %s, which was seen before", d.Faults, kind, victim.Address)
	}
	must(t, heal())
	if after := describe(t, f); !reflect.DeepEqual(after, before) {
		t.Errorf("after the fault the machine is described as\n%+v, before it\n%+v", after, before)
	}
}

func testLost(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	faulty(t, f, simulator.FaultLost, machine.FaultLost, false, func() error {
		return f.Machine.Restore("1", simulator.FaultLost)
	})
}

func testResetRequired(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	faulty(t, f, simulator.FaultResetRequired, machine.FaultResetRequired, false, func() error {
		return f.Machine.Reset("1")
	})
}

func testMemoryUnknown(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "l40s")
	faulty(t, f, simulator.FaultMemoryNotSupported, machine.FaultMemoryUnknown, true, func() error {
		return f.Machine.Restore("1", simulator.FaultMemoryNotSupported)
	})
}

func testXid(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	health := func() machine.Health { return describe(t, f).GPUs[2].Health }
	for _, benign := range []uint64{13, 31, 43, 45, 68} {
		must(t, f.Machine.RaiseXid("2", benign))
	}
	if h := health(); !h.OK() {
		t.Errorf("after applications' errors the GPU is %+v", h)
	}
	must(t, f.Machine.RaiseXid("2", 48))
	if h := health(); h.Reason != machine.FaultResetRequired || h.Message == "" {
		t.Errorf("after Xid 48 the GPU is %+v", h)
	}
	must(t, f.Machine.Reset("2"))
	if h := health(); !h.OK() {
		t.Errorf("after a reset the GPU is %+v", h)
	}
}

// testXidOfOldDriver: before branch 570 only events tell.
func testXidOfOldDriver(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-a100")
	uuid := f.Machine.Spec().GPUs[2].UUID
	watch := patiencetest.Watch(t, f.GPUs.Watch)
	watch.Await("an application's error", func() { must(t, f.Machine.RaiseXid("2", 31)) }, func(e hardware.Event) bool { return e.Xid == 31 })
	if h := describe(t, f).GPUs[2].Health; !h.OK() {
		t.Errorf("after an application's error the GPU is %+v", h)
	}
	watch.Await("a hardware's error", func() { must(t, f.Machine.RaiseXid("2", 48)) }, func(e hardware.Event) bool {
		return e.UUID == uuid && e.Xid == 48
	})
	for i, g := range describe(t, f).GPUs {
		want := machine.FaultKind("")
		if i == 2 {
			want = machine.FaultXid
		}
		if g.Health.Reason != want {
			t.Errorf("GPU %d is %+v, want reason %q", i, g.Health, want)
		}
	}
}

// without says whether err is right without a driver. That a kernel module has gone
// together with its library can only be known by who had the library open.
func without(err error, driver simulator.Driver) bool {
	return errors.Is(err, failure.Absent) || driver == simulator.DriverMissing && errors.Is(err, failure.Unreachable)
}

func testDriver(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "l40s")
	for _, gone := range []simulator.Driver{simulator.DriverMissing, simulator.DriverUnloaded} {
		for range 3 { // each time anew
			must(t, f.Machine.SetDriver(gone))
			f.Machine.Sync()
			if _, err := f.GPUs.Describe(t.Context()); !without(err, gone) {
				t.Fatalf("with the driver %s: %v", gone, err)
			}
			if _, err := f.GPUs.ComputeMode(t.Context(), f.Machine.Spec().GPUs[0].UUID); !without(err, gone) {
				t.Fatalf("compute mode with the driver %s: %v", gone, err)
			}
			if err := f.GPUs.Watch(t.Context(), func(hardware.Event) {}); !without(err, gone) {
				t.Fatalf("watching with the driver %s: %v", gone, err)
			}
			must(t, f.Machine.SetDriver(simulator.DriverLoaded))
			f.Machine.Sync()
			checkDescription(t, f, describe(t, f))
		}
	}
}
