package hardwaretest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// SharingFixture is an implementation, and the machine that it must see.
type SharingFixture struct {
	Sharing hardware.Sharing
	Machine *simulatortest.Machine
	// Crash lets the control daemon over these devices die, as kill -9 does.
	Crash func(t *testing.T, devices []string)
}

// TestSharing runs the suite. make makes a fixture of the machine with that name in
// demo/machines, and cleans up after itself.
func TestSharing(t *testing.T, make func(t *testing.T, machine string) SharingFixture) {
	for name, test := range map[string]func(*testing.T, func(*testing.T, string) SharingFixture){
		"MPS":             testMPS,
		"MPSConflict":     testMPSConflict,
		"MPSErrors":       testMPSErrors,
		"MPSOnMIG":        testMPSOnMIG,
		"MPSAtOnce":       testMPSAtOnce,
		"MPSRestarts":     testMPSRestarts,
		"Namespaces":      testNamespaces,
		"NamespaceErrors": testNamespaceErrors,
		"TimeSlice":       testTimeSlice,
		"TimeSliceErrors": testTimeSliceErrors,
	} {
		t.Run(name, func(t *testing.T) { test(t, make) })
	}
}

// uuids are those of GPUs, by their indices.
func (f SharingFixture) uuids(indices ...int) (uuids []string) {
	for _, i := range indices {
		uuids = append(uuids, f.Machine.Spec().GPUs[i].UUID)
	}
	return uuids
}

// start starts a control daemon and checks what is said of it.
func (f SharingFixture) start(t *testing.T, devices []string, protocol int) hardware.MPSDaemon {
	t.Helper()
	d, err := f.Sharing.StartMPS(t.Context(), devices)
	if err != nil {
		t.Fatalf("starting MPS over %q: %v", devices, err)
	}
	if d.Protocol != protocol || d.Pipe == "" || d.Shm == "" || d.Pipe == d.Shm {
		t.Errorf("MPS over %q: %+v, want protocol %d", devices, d, protocol)
	}
	return d
}

// testMPS: a daemon is started once, stopped once, and started again.
func testMPS(t *testing.T, make func(*testing.T, string) SharingFixture) {
	f := make(t, "dgx-h100")
	one, two := f.uuids(0), f.uuids(3, 2)
	first := f.start(t, one, 2)
	other := f.start(t, two, 2)
	if first.Pipe == other.Pipe || first.Shm == other.Shm {
		t.Errorf("%+v and %+v share a directory", first, other)
	}
	if again := f.start(t, one, 2); again != first {
		t.Errorf("the second start answers %+v, the first did %+v", again, first)
	}
	for range 2 {
		must(t, f.Sharing.StopMPS(t.Context(), one))
	}
	f.start(t, one, 2)
	must(t, f.Sharing.StopMPS(t.Context(), one))
	must(t, f.Sharing.StopMPS(t.Context(), two))
}

// testMPSConflict: a device has one daemon, and is free when that has been stopped.
func testMPSConflict(t *testing.T, make func(*testing.T, string) SharingFixture) {
	f := make(t, "dgx-h100")
	pair := f.uuids(1, 2)
	f.start(t, pair, 2)
	for _, devices := range [][]string{f.uuids(1), f.uuids(2, 1), f.uuids(1, 2, 3), f.uuids(0, 2)} {
		if _, err := f.Sharing.StartMPS(t.Context(), devices); !errors.Is(err, failure.Conflict) {
			t.Errorf("MPS over %q beside %q: %v", devices, pair, err)
		}
		must(t, f.Sharing.StopMPS(t.Context(), devices)) // it is not that daemon's
	}
	if _, err := f.Sharing.StartMPS(t.Context(), f.uuids(1)); !errors.Is(err, failure.Conflict) {
		t.Errorf("stopping other sets of devices has stopped %q: %v", pair, err)
	}
	must(t, f.Sharing.StopMPS(t.Context(), pair))
	f.start(t, f.uuids(1), 2)
	must(t, f.Sharing.StopMPS(t.Context(), f.uuids(1)))
}

func testMPSErrors(t *testing.T, make func(*testing.T, string) SharingFixture) {
	f := make(t, "dgx-h100")
	for _, c := range []struct {
		devices []string
		class   error
	}{
		{nil, failure.Invalid},
		{append(f.uuids(0), f.uuids(0)...), failure.Invalid},
		{[]string{simulator.UUID("elsewhere", machine.Address{})}, failure.Absent},
		{append(f.uuids(0), "MIG-00000000-0000-5000-8000-000000000000"), failure.Absent},
	} {
		if _, err := f.Sharing.StartMPS(t.Context(), c.devices); !errors.Is(err, c.class) {
			t.Errorf("MPS over %q: %v, want %v", c.devices, err, c.class)
		}
	}
	must(t, f.Machine.Inject("5", simulator.FaultLost))
	if _, err := f.Sharing.StartMPS(t.Context(), f.uuids(5)); !errors.Is(err, failure.Absent) {
		t.Errorf("MPS over a lost GPU: %v", err)
	}
	f.start(t, f.uuids(0), 2) // nothing of the failed ones is left
	must(t, f.Sharing.StopMPS(t.Context(), f.uuids(0)))
	f = make(t, "p100")
	if _, err := f.Sharing.StartMPS(t.Context(), f.uuids(0)); !errors.Is(err, failure.Unsupported) {
		t.Errorf("MPS over a GPU that is older than Volta: %v", err)
	}
}

// testMPSOnMIG: each MIG device has a daemon of its own, and its GPU none.
func testMPSOnMIG(t *testing.T, make func(*testing.T, string) SharingFixture) {
	f := make(t, "static-mig")
	var devices []string
	state, err := f.Machine.State()
	must(t, err)
	for _, in := range state.GPUs[0].Instances {
		devices = append(devices, in.ComputeInstances[0].UUID)
		f.start(t, devices[len(devices)-1:], 2)
	}
	if len(devices) != 2 {
		t.Fatalf("MIG devices %q", devices)
	}
	for _, set := range [][]string{f.uuids(0), f.uuids(1)} {
		if _, err := f.Sharing.StartMPS(t.Context(), set); !errors.Is(err, failure.Unsupported) {
			t.Errorf("MPS over %q, a GPU in MIG mode: %v", set, err)
		}
	}
	for i := range devices {
		must(t, f.Sharing.StopMPS(t.Context(), devices[i:i+1]))
	}
	if _, err := f.Sharing.StartMPS(t.Context(), devices); !errors.Is(err, failure.Unsupported) {
		t.Errorf("MPS over two MIG devices, of which CUDA sees one: %v", err)
	}
}

// testMPSAtOnce: however many ask for it, and for others, each set has one daemon.
func testMPSAtOnce(t *testing.T, make func(*testing.T, string) SharingFixture) {
	f := make(t, "dgx-h100")
	answers := [2][]hardware.MPSDaemon{}
	var all sync.WaitGroup
	var mutex sync.Mutex
	for i := range 48 {
		all.Go(func() {
			d, err := f.Sharing.StartMPS(t.Context(), f.uuids(i%2))
			if err != nil {
				t.Error(err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			answers[i%2] = append(answers[i%2], d)
		})
	}
	all.Wait()
	for i, a := range answers {
		if len(slices.Compact(a)) != 1 {
			t.Errorf("GPU %d was said to have %+v", i, a)
		}
		must(t, f.Sharing.StopMPS(t.Context(), f.uuids(i)))
	}
	if answers[0][0].Pipe == answers[1][0].Pipe {
		t.Errorf("two GPUs have the pipe directory %s", answers[0][0].Pipe)
	}
}

// testMPSRestarts: a daemon that died is there again, in the same place, and that it
// died is told. Nothing says that watching has begun, so that it dies again and again.
func testMPSRestarts(t *testing.T, make func(*testing.T, string) SharingFixture) {
	f := make(t, "dgx-h100")
	devices := f.uuids(4)
	before := f.start(t, devices, 2)
	watch := patiencetest.Watch(t, f.Sharing.WatchMPS)
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patiencetest.Limit)
	f.Crash(t, devices)
	for told := false; !told; {
		select {
		case e := <-watch.Events:
			told = e.Kind == hardware.MPSRestarted && slices.Equal(e.Devices, devices) && e.Message != ""
		case <-again.C:
			f.Crash(t, devices)
		case <-deadline:
			t.Fatal("nobody was told")
		}
	}
	if after := f.start(t, devices, 2); after != before {
		t.Errorf("it is there again as %+v, and was as %+v", after, before)
	}
	must(t, f.Sharing.StopMPS(t.Context(), devices))
}
