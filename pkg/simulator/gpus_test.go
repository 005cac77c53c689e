package simulator_test

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware/hardwaretest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestConformance(t *testing.T) {
	hardwaretest.TestGPUs(t, func(t *testing.T, name string) hardwaretest.Fixture {
		m := simulatortest.New(t, name)
		return hardwaretest.Fixture{GPUs: m.GPUs(), Machine: m}
	})
}
