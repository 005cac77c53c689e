package nvml_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// fixture is the adapter over a machine's own library.
func fixture(t *testing.T, name string) hardwaretest.Fixture {
	m := simulatortest.NewWithLibrary(t, name)
	checkLeaks(t)
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), Cgroup: t.TempDir()})
	t.Cleanup(func() {
		if err := gpus.Close(); err != nil {
			t.Error(err)
		}
	})
	return hardwaretest.Fixture{GPUs: gpus, Machine: m}
}

func TestConformance(t *testing.T) { hardwaretest.TestGPUs(t, fixture) }

// TestOthersUseNVML: Init and Shutdown of nvcdi, say, before and after Close.
func TestOthersUseNVML(t *testing.T) {
	f := fixture(t, "t4")
	gpus := f.GPUs.(*nvml.GPUs)
	library := gpus.NVML()
	pair := func() {
		t.Helper()
		if ret := library.Init(); ret != api.SUCCESS {
			t.Fatal(ret.String())
		}
		if n, ret := library.DeviceGetCount(); n != 1 || ret != api.SUCCESS {
			t.Errorf("%d GPUs, %s", n, ret.String())
		}
		if ret := library.Shutdown(); ret != api.SUCCESS {
			t.Fatal(ret.String())
		}
	}
	pair()
	for range 3 {
		if _, err := gpus.Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		pair()
	}
	if err := gpus.Close(); err != nil {
		t.Fatal(err)
	}
	pair()
	if _, ret := library.DeviceGetCount(); ret != api.ERROR_UNINITIALIZED {
		t.Errorf("after all are done NVML answers %s", ret.String())
	}
}

// A GPU that hangs is a fault after a while, costs the others nothing, and is not
// asked again while it hangs.
func TestGPUThatHangs(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), Patience: 3 * time.Second})
	defer gpus.Close()
	if err := m.Slow("0", "nvmlDeviceGetName", time.Hour); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d, err := gpus.Describe(t.Context())
		if err != nil || len(d.GPUs) != 7 || len(d.Faults) != 1 || d.Faults[0].Kind != machine.FaultUnresponsive {
			t.Fatalf("%d GPUs, faults %+v, %v", len(d.GPUs), d.Faults, err)
		}
		if d.Faults[0].Device != m.Spec().GPUs[0].Address.String() {
			t.Errorf("the fault is of %s", d.Faults[0].Device)
		}
	}
	untilWell(t, m, gpus, "nvmlDeviceGetName")
}

// untilWell lets a call be as quick as usual, and waits until that is seen. go-nvml
// does not like it when a late call ends one session while another one begins.
func untilWell(t *testing.T, m *simulatortest.Machine, gpus *nvml.GPUs, call string) {
	t.Helper()
	if err := m.Slow("0", call, 0); err != nil {
		t.Fatal(err)
	}
	patiencetest.Until(t, "all GPUs answer again", func() bool {
		d, err := gpus.Describe(t.Context())
		return err == nil && len(d.GPUs) == 8 && len(d.Faults) == 0
	})
}

// A driver that does not come to itself is said so after a while, and is used when it has.
func TestDriverThatHangs(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), OpenPatience: 100 * time.Millisecond})
	defer gpus.Close()
	if err := m.Slow("0", "nvmlInit", time.Hour); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if d, err := gpus.Describe(t.Context()); !errors.Is(err, failure.Busy) || !strings.Contains(err.Error(), "the NVIDIA driver has not answered for") {
			t.Fatalf("%d GPUs, %v", len(d.GPUs), err)
		}
		if err := gpus.Watch(t.Context(), func(hardware.Event) {}); !errors.Is(err, failure.Busy) {
			t.Errorf("watching: %v", err)
		}
	}
	untilWell(t, m, gpus, "nvmlInit")
}

// A driver that was unloaded and does not let go holds up nobody, and is said so.
func TestDriverThatDoesNotLetGo(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), Patience: 2 * time.Second, OpenPatience: 100 * time.Millisecond})
	untilWell(t, m, gpus, "nvmlShutdown")
	if err := errors.Join(m.Slow("0", "nvmlShutdown", time.Hour), m.SetDriver(simulator.DriverUnloaded)); err != nil {
		t.Fatal(err)
	}
	for _, class := range []error{failure.Absent, failure.Busy, failure.Busy} {
		if _, err := gpus.Describe(t.Context()); !errors.Is(err, class) {
			t.Errorf("%v, want %v", err, class)
		}
	}
	if err := gpus.Close(); !errors.Is(err, failure.Busy) {
		t.Errorf("closed: %v", err)
	}
	if err := m.SetDriver(simulator.DriverLoaded); err != nil {
		t.Fatal(err)
	}
	untilWell(t, m, gpus, "nvmlShutdown")
	if err := gpus.Close(); err != nil {
		t.Errorf("closed: %v", err)
	}
}

// Watching goes on beside a GPU that hangs, and ends in time.
func TestWatchBesideAGPUThatHangs(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), Patience: 2 * time.Second})
	// NVML stays open until the call that hangs has returned, so that this test ends it.
	library := gpus.NVML()
	library.Init()
	t.Cleanup(func() { library.Shutdown() })
	checkLeaks(t)
	defer gpus.Close()
	if err := m.Slow("0", "nvmlDeviceRegisterEvents", time.Hour); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan hardware.Event, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- gpus.Watch(ctx, func(e hardware.Event) {
			select {
			case events <- e:
			default: // one is enough
			}
		})
	}()
	deadline := time.After(time.Minute)
	for seen := false; !seen; { // until the watch has begun
		if err := m.RaiseXid("3", 31); err != nil {
			t.Fatal(err)
		}
		select {
		case <-events:
			seen = true
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			t.Fatal("no event")
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-deadline:
		t.Fatal("Watch does not end")
	}
	if err := m.Slow("0", "nvmlDeviceRegisterEvents", 0); err != nil {
		t.Fatal(err)
	}
}
