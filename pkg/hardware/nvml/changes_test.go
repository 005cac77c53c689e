package nvml_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// making makes an instance on the first of eight GPUs beside the test, and returns when
// that has begun. It takes until release.
func making(t *testing.T, m *simulatortest.Machine, gpus *nvml.GPUs) (made <-chan error, release func()) {
	t.Helper()
	gpu := m.Spec().GPUs[0].UUID
	if _, err := gpus.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := gpus.SetMIGMode(t.Context(), gpu, true); err != nil {
		t.Fatal(err)
	}
	slow := func(by time.Duration) {
		t.Helper()
		if err := m.Slow(gpu, simulator.CallMakeGPUInstance, by); err != nil {
			t.Fatal(err)
		}
	}
	slow(time.Hour)
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		close(begun)
		_, err := gpus.MakeGPUInstance(t.Context(), gpu, 19, machine.Placement{Start: 0, Size: 1})
		ended <- err
	}()
	<-begun
	return ended, func() { slow(0) }
}

// A query that waits for a change of its GPU, as the driver may make it, is no GPU that
// hangs; the change may take longer than a query.
func TestDescribeDuringAChange(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	const patience = 2 * time.Second
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), Patience: patience})
	defer gpus.Close()
	made, release := making(t, m, gpus)
	if err := m.Slow("0", "nvmlDeviceGetName", patience*3/2); err != nil {
		t.Fatal(err)
	}
	d, err := gpus.Describe(t.Context())
	if err != nil || len(d.GPUs) != 8 || len(d.Faults) != 0 {
		t.Errorf("during the change: %d GPUs, faults %+v, %v", len(d.GPUs), d.Faults, err)
	}
	release()
	if err := <-made; err != nil {
		t.Error(err)
	}
	d, err = gpus.Describe(t.Context())
	if err != nil || len(d.GPUs) != 7 || len(d.Faults) != 1 || d.Faults[0].Kind != machine.FaultUnresponsive {
		t.Errorf("as slow without a change: %d GPUs, faults %+v, %v", len(d.GPUs), d.Faults, err)
	}
	untilWell(t, m, gpus, "nvmlDeviceGetName")
}

// A change that hangs costs the other GPUs nothing, and its own only as long as it
// hangs. What it made is seen afterwards.
func TestChangeThatHangs(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), Patience: 2 * time.Second, ChangePatience: 3 * time.Second})
	defer gpus.Close()
	spec := m.Spec()
	made, release := making(t, m, gpus)
	if err := <-made; !errors.Is(err, failure.Busy) {
		t.Errorf("the change: %v", err)
	}
	if err := gpus.SetMIGMode(t.Context(), spec.GPUs[0].UUID, false); !errors.Is(err, failure.Busy) {
		t.Errorf("another on the same GPU: %v", err)
	}
	if err := gpus.SetMIGMode(t.Context(), spec.GPUs[1].UUID, true); err != nil {
		t.Errorf("one on another GPU: %v", err)
	}
	d, err := gpus.Describe(t.Context())
	if err != nil || len(d.GPUs) != 7 || len(d.Faults) != 1 || d.Faults[0].Device != spec.GPUs[0].Address.String() {
		t.Errorf("while it hangs: %d GPUs, faults %+v, %v", len(d.GPUs), d.Faults, err)
	}
	release()
	patiencetest.Until(t, "what was made is seen", func() bool {
		p, err := gpus.Partitions(t.Context(), spec.GPUs[0].UUID)
		return err == nil && len(p.Instances) == 1
	})
}
