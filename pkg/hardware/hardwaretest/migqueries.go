package hardwaretest

import (
	"errors"
	"reflect"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// forbid makes a call that needs privileges be refused on a GPU, for as long as a test takes.
func forbid(t *testing.T, f Fixture, gpu, call string, times int) {
	t.Helper()
	must(t, f.Machine.Fail(gpu, call, simulator.Failure{Times: times, Error: simulator.FailureNoPermission}))
}

// kinds of the faults that a GPU has.
func kinds(d hardware.Description, of machine.GPU) map[machine.FaultKind]int {
	found := map[machine.FaultKind]int{}
	for _, fault := range d.Faults {
		if fault.Device == of.Address.String() {
			found[fault.Kind]++
		}
	}
	return found
}

// undivided is a GPU of which an agent without privileges is told nothing about partitions.
func undivided(gpu machine.GPU) machine.GPU {
	gpu.MIG.Profiles, gpu.MIG.Instances = nil, nil
	return gpu
}

// testNotPermitted: without privileges a GPU is offered whole, without a word, or it is
// in MIG mode and cannot be given out, which is a fault. Others are as they were.
func testNotPermitted(t *testing.T, make func(*testing.T, string) Fixture) {
	const placements, instances, memory = "nvmlDeviceGetGpuInstancePossiblePlacements", "nvmlDeviceGetGpuInstances", "nvmlDeviceGetMemoryInfo"
	f := make(t, "static-mig")
	before := describe(t, f)
	divided, whole := before.GPUs[0], before.GPUs[2]
	check := func(what string, divided, whole machine.GPU, faults map[machine.FaultKind]int) {
		t.Helper()
		d := describe(t, f)
		if want := []machine.GPU{divided, before.GPUs[1], whole}; !reflect.DeepEqual(d.GPUs, want) {
			t.Errorf("%s: described as\n%+v, want\n%+v", what, d.GPUs, want)
		}
		if got := kinds(d, divided); !reflect.DeepEqual(got, faults) {
			t.Errorf("%s: faults of the GPU in MIG mode %v, want %v", what, got, faults)
		}
		all := 0
		for _, n := range faults {
			all += n
		}
		if len(d.Faults) != all {
			t.Errorf("%s: faults %+v, want %d", what, d.Faults, all)
		}
	}

	forbid(t, f, "0", instances, 1000)
	forbid(t, f, "2", instances, 1000)
	check("instances", undivided(divided), whole, map[machine.FaultKind]int{machine.FaultMIGUnusable: 1})
	if _, err := f.GPUs.Partitions(t.Context(), divided.UUID); err == nil || failure.ClassOf(err) != nil {
		t.Errorf("partitions that may not be seen: %v", err)
	}

	forbid(t, f, "0", instances, 0)
	forbid(t, f, "0", placements, 1000)
	forbid(t, f, "2", placements, 1000)
	forbid(t, f, "0", memory, 1000)
	nothing := undivided(divided)
	nothing.Memory = machine.Memory{}
	check("placements and memory", nothing, undivided(whole),
		map[machine.FaultKind]int{machine.FaultMIGUnusable: 1, machine.FaultMemoryUnknown: 1})
	if len((&machine.Machine{GPUs: []machine.GPU{undivided(whole)}}).Devices()) < 2 {
		t.Error("the GPU that is not in MIG mode is not offered")
	}

	for _, call := range []string{placements, memory, instances} {
		forbid(t, f, "0", call, 0)
		forbid(t, f, "2", call, 0)
	}
	check("all permitted again", divided, whole, map[machine.FaultKind]int{})
	if err := f.GPUs.SetMIGMode(t.Context(), divided.UUID, false); !errors.Is(err, failure.Conflict) {
		t.Errorf("switching the mode with instances: %v", err)
	}
}

// testProfilesNeedMIG: where the driver tells profiles in MIG mode alone, a GPU has no
// partitions until somebody switches it by hand.
func testProfilesNeedMIG(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	must(t, f.Machine.Inject("1", simulator.FaultProfilesNeedMIG))
	look := func() machine.GPU {
		t.Helper()
		d := describe(t, f)
		checkDescription(t, f, d)
		if len(d.Faults) != 0 {
			t.Errorf("faults %+v", d.Faults)
		}
		return d.GPUs[1]
	}
	if gpu := look(); len(gpu.Partitions()) != 0 || len(gpu.MIG.Profiles) != 0 || !gpu.MIG.Capable || gpu.MIG.Enabled {
		t.Errorf("with the mode off it has %d partitions, %+v", len(gpu.Partitions()), gpu.MIG)
	}
	must(t, f.Machine.SetMIGMode("1", true))
	if gpu := look(); len(gpu.Partitions()) == 0 {
		t.Errorf("with the mode on it has no partitions: %+v", gpu.MIG)
	}
}
