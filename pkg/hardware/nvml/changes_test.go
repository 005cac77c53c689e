package nvml_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// making makes an instance on the first of eight GPUs, slowly, beside the test, and
// returns when that has begun.
func making(t *testing.T, m *simulatortest.Machine, gpus *nvml.GPUs, took time.Duration) <-chan error {
	t.Helper()
	gpu := m.Spec().GPUs[0].UUID
	if _, err := gpus.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := gpus.SetMIGMode(t.Context(), gpu, true); err != nil {
		t.Fatal(err)
	}
	if err := m.Slow(gpu, simulator.CallMakeGPUInstance, took); err != nil {
		t.Fatal(err)
	}
	begun, made := make(chan struct{}), make(chan error, 1)
	go func() {
		close(begun)
		_, err := gpus.MakeGPUInstance(t.Context(), gpu, 19, machine.Placement{Start: 0, Size: 1})
		made <- err
	}()
	<-begun
	return made
}

// A query that waits for a change of its GPU, as the driver may make it, is no GPU that
// hangs; the change may take longer than a query.
func TestDescribeDuringAChange(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), Patience: time.Second})
	defer gpus.Close()
	made := making(t, m, gpus, 5*time.Second)
	if err := m.Slow("0", "nvmlDeviceGetName", 3*time.Second); err != nil {
		t.Fatal(err)
	}
	d, err := gpus.Describe(t.Context())
	if err != nil || len(d.GPUs) != 8 || len(d.Faults) != 0 {
		t.Errorf("during the change: %d GPUs, faults %+v, %v", len(d.GPUs), d.Faults, err)
	}
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
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), Patience: 100 * time.Millisecond, ChangePatience: time.Second})
	defer gpus.Close()
	spec := m.Spec()
	if err := <-making(t, m, gpus, 6*time.Second); !errors.Is(err, failure.Busy) {
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
	for deadline := time.Now().Add(time.Minute); ; {
		p, err := gpus.Partitions(t.Context(), spec.GPUs[0].UUID)
		if err == nil && len(p.Instances) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it returned: %+v, %v", p, err)
		}
	}
}
