package nvml_test

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// fixture is the adapter over a machine's own library.
func fixture(t *testing.T, name string) hardwaretest.Fixture {
	m := simulatortest.NewWithLibrary(t, name)
	checkLeaks(t)
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root()})
	t.Cleanup(func() {
		if err := gpus.Close(); err != nil {
			t.Error(err)
		}
	})
	return hardwaretest.Fixture{GPUs: gpus, Machine: m}
}

func TestConformance(t *testing.T) { hardwaretest.TestGPUs(t, fixture) }
