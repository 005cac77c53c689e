package simulator_test

import (
	"errors"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func wantMode(t *testing.T, m *simulatortest.Machine, enabled, pending bool, instances int) {
	t.Helper()
	if g := gpu(t, m, 0); g.MIGEnabled != enabled || g.MIGPending != pending || len(g.Instances) != instances {
		t.Errorf("MIG is %t, after a reset %t, with %d instances; want %t, %t and %d",
			g.MIGEnabled, g.MIGPending, len(g.Instances), enabled, pending, instances)
	}
}

func TestModeAtOnce(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	must(t, m.SetComputeMode("0", machine.ComputeModeExclusiveProcess))
	if _, err := m.MakePartition("0", "1g.10gb", nil); !errors.Is(err, failure.Conflict) {
		t.Errorf("with MIG off: %v", err)
	}
	must(t, m.SetMIGMode("0", true))
	wantMode(t, m, true, true, 0)
	if mode := gpu(t, m, 0).ComputeMode; mode != machine.ComputeModeDefault {
		t.Errorf("in MIG mode the compute mode is %s", mode)
	}
	in, err := m.MakePartition("0", "1g.10gb", nil)
	must(t, err)
	if err := m.SetMIGMode("0", false); !errors.Is(err, failure.Conflict) {
		t.Errorf("off with an instance: %v", err)
	}
	must(t, m.SetMIGMode("0", true))
	wantMode(t, m, true, true, 1)
	if err := m.DestroyGPUInstance("0", in.ID); !errors.Is(err, failure.Conflict) {
		t.Errorf("with a compute instance: %v", err)
	}
	must(t, m.DestroyPartition("0", in.ID))
	must(t, m.SetMIGMode("0", false))
	wantMode(t, m, false, false, 0)
}

func TestModeByReset(t *testing.T) {
	m := simulatortest.New(t, "dgx-a100")
	uuid := m.Spec().GPUs[0].UUID
	if err := m.GPUs().SetMIGMode(t.Context(), uuid, true); !errors.Is(err, failure.Unsupported) {
		t.Errorf("the driver is allowed to: %v", err)
	}
	wantMode(t, m, false, false, 0)
	must(t, m.GPUs().SetMIGMode(t.Context(), uuid, false)) // it is
	must(t, m.SetMIGMode("0", true))
	wantMode(t, m, false, true, 0)
	must(t, m.SetComputeMode("0", machine.ComputeModeProhibited))
	must(t, m.Reset("0"))
	wantMode(t, m, true, true, 0)
	if mode := gpu(t, m, 0).ComputeMode; mode != machine.ComputeModeDefault {
		t.Errorf("in MIG mode the compute mode is %s", mode)
	}
	for what, happen := range ends(m) {
		if _, err := m.MakePartition("0", "3g.40gb", nil); err != nil {
			t.Fatal(err)
		}
		must(t, happen())
		wantMode(t, m, true, true, 0)
		t.Log("kept its mode after", what)
	}
	must(t, m.SetMIGMode("0", false))
	must(t, m.Reboot())
	wantMode(t, m, false, false, 0)
}

// ends are what instances do not survive.
func ends(m *simulatortest.Machine) map[string]func() error {
	return map[string]func() error{
		"a reset":  func() error { return m.Reset("0") },
		"a reboot": m.Reboot,
		"loading the driver anew": func() error {
			return errors.Join(m.SetDriver(simulator.DriverUnloaded), m.SetDriver(simulator.DriverLoaded))
		},
		"a loss": func() error {
			return errors.Join(m.Inject("0", simulator.FaultLost), m.Restore("0", simulator.FaultLost))
		},
	}
}

func TestInstancesEnd(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	for what, happen := range ends(m) {
		must(t, m.SetMIGMode("0", true))
		_, err := m.MakePartition("0", "3g.40gb", nil)
		must(t, err)
		must(t, happen())
		mode := what == "a reset" // others put it back to the description's
		wantMode(t, m, mode, mode, 0)
	}
}
