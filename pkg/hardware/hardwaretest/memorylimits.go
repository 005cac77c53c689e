package hardwaretest

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// testMemoryLimits: each GPU is asked for itself whether the driver can limit cgroups, and
// the driver's branch is not taken for an answer.
func testMemoryLimits(t *testing.T, make func(*testing.T, string) Fixture) {
	const question = "nvmlDeviceGetMemoryLimits"
	f := make(t, "mps-v3")
	says := func(when string, faults int, want ...bool) {
		t.Helper()
		d := describe(t, f)
		for i, able := range want {
			if got := d.GPUs[i].LimitsCgroups; got != able {
				t.Errorf("%s: GPU %d can limit cgroups: %t, want %t", when, i, got, able)
			}
		}
		if len(d.GPUs) != len(want) || len(d.Faults) != faults {
			t.Errorf("%s: %d GPUs, faults %+v, want %d and %d", when, len(d.GPUs), d.Faults, len(want), faults)
		}
	}
	says("both can", 0, true, true)
	must(t, f.Machine.Inject("1", simulator.FaultNoMemoryLimits))
	says("one of them", 0, true, false)
	must(t, f.Machine.Restore("1", simulator.FaultNoMemoryLimits))
	must(t, f.GPUs.SetMIGMode(t.Context(), f.Machine.Spec().GPUs[0].UUID, true))
	must(t, f.Machine.Inject("0", simulator.FaultNoMemoryLimits))
	says("in MIG mode, in which it is not asked", 0, true, true)
	must(t, f.Machine.Restore("0", simulator.FaultNoMemoryLimits))
	must(t, f.GPUs.SetMIGMode(t.Context(), f.Machine.Spec().GPUs[0].UUID, false))
	says("out of it", 0, true, true)
	forbid(t, f, "1", question, 1000)
	says("not permitted", 1, true, false)
	if d := describe(t, f); kinds(d, d.GPUs[1])[machine.FaultUnreadable] != 1 {
		t.Errorf("not permitted: faults %+v", d.Faults)
	}
	forbid(t, f, "1", question, 0)
	says("permitted again", 0, true, true)
}
