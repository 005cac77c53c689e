package simulator_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// TestEveryCallCanFail, as often as was asked for, and changes nothing then.
func TestEveryCallCanFail(t *testing.T) {
	for kind, class := range map[simulator.FailureKind]error{
		simulator.FailureUnknown: nil, simulator.FailureInUse: failure.Busy,
		simulator.FailureInsufficientResources: failure.Conflict, simulator.FailureLost: failure.Absent,
		simulator.FailureNoPermission: nil,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			m := simulatortest.New(t, "static-mig")
			for call, do := range calls(t) {
				must(t, m.Reboot())
				must(t, m.DestroyComputeInstance("0", 1, 0))
				before := gpu(t, m, 0).Instances
				must(t, m.Fail("0", call, simulator.Failure{Times: 2, Error: kind}))
				for range 2 {
					err := do(m)
					if err == nil || failure.ClassOf(err) != class || errors.Is(err, simulator.ErrNoPermission) != (kind == simulator.FailureNoPermission) {
						t.Errorf("%s: %v, want class %v", call, err, class)
					}
				}
				g := gpu(t, m, 0)
				if kind == simulator.FailureLost {
					if !g.Has(simulator.FaultLost) || g.Instances != nil {
						t.Errorf("%s: the GPU is not lost: %+v", call, g.GPUState)
					}
					must(t, m.Fail("0", call, simulator.Failure{Error: kind})) // the second call did not get so far
					continue
				}
				if !reflect.DeepEqual(g.Instances, before) {
					t.Errorf("%s: a failed call changed %+v to %+v", call, before, g.Instances)
				}
				must(t, do(m))
			}
		})
	}
}

// calls are those on the first GPU of static-mig that succeed once its GPU instance 1
// has no compute instance.
func calls(t *testing.T) map[string]func(*simulatortest.Machine) error {
	uuid := func(m *simulatortest.Machine) string { return m.Spec().GPUs[0].UUID }
	return map[string]func(*simulatortest.Machine) error{
		simulator.CallSetMIGMode: func(m *simulatortest.Machine) error {
			return m.GPUs().SetMIGMode(t.Context(), uuid(m), true)
		},
		simulator.CallMakeGPUInstance: func(m *simulatortest.Machine) error {
			_, err := m.GPUs().MakeGPUInstance(t.Context(), uuid(m), 19, machine.Placement{Start: 0, Size: 1})
			return err
		},
		simulator.CallMakeComputeInstance: func(m *simulatortest.Machine) error {
			_, err := m.GPUs().MakeComputeInstance(t.Context(), uuid(m), 1)
			return err
		},
		simulator.CallDestroyComputeInstance: func(m *simulatortest.Machine) error {
			return m.GPUs().DestroyComputeInstance(t.Context(), uuid(m), 3, 0)
		},
		simulator.CallDestroyGPUInstance: func(m *simulatortest.Machine) error {
			return m.GPUs().DestroyGPUInstance(t.Context(), uuid(m), 1)
		},
		"nvmlDeviceGetGpuInstances": func(m *simulatortest.Machine) error {
			_, err := m.GPUs().Partitions(t.Context(), uuid(m))
			return err
		},
		"nvmlDeviceSetComputeMode": func(m *simulatortest.Machine) error {
			return m.GPUs().SetComputeMode(t.Context(), uuid(m), machine.ComputeModeDefault)
		},
		"nvmlDeviceGetComputeMode": func(m *simulatortest.Machine) error {
			_, err := m.GPUs().ComputeMode(t.Context(), uuid(m))
			return err
		},
	}
}

func TestFailuresAreChecked(t *testing.T) {
	m := simulatortest.New(t, "static-mig")
	for _, f := range []simulator.Failure{{Times: -1, Error: simulator.FailureLost}, {Times: 1, Error: "odd"}, {Times: 1}} {
		if err := m.Fail("0", simulator.CallSetMIGMode, f); !errors.Is(err, failure.Invalid) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	must(t, m.Fail("0", simulator.CallSetMIGMode, simulator.Failure{Times: 3, Error: simulator.FailureLost}))
	must(t, m.Fail("0", simulator.CallSetMIGMode, simulator.Failure{Times: 0, Error: simulator.FailureLost}))
	must(t, m.SetMIGMode("0", true))
}
