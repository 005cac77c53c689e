package hardwaretest

import (
	"errors"
	"reflect"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// migGPU is a GPU in MIG mode.
type migGPU struct {
	Fixture
	t    *testing.T
	uuid string
	gpu  machine.GPU // before there were partitions
}

// divide brings a machine's GPU into MIG mode, as its administrator would.
func divide(t *testing.T, f Fixture, index int) migGPU {
	t.Helper()
	gpu := describe(t, f).GPUs[index]
	must(t, f.Machine.SetMIGMode(gpu.UUID, true))
	must(t, f.Machine.Reset(gpu.UUID))
	return migGPU{Fixture: f, t: t, uuid: gpu.UUID, gpu: gpu}
}

func (g migGPU) profile(name string) machine.MIGProfile {
	g.t.Helper()
	for _, p := range g.gpu.MIG.Profiles {
		if p.Name == name {
			return p
		}
	}
	g.t.Fatalf("%s has no profile %s", g.gpu.ProductName, name)
	return machine.MIGProfile{}
}

// try makes a GPU instance of a profile by its name, where it starts.
func (g migGPU) try(profile string, start int) (int, error) {
	g.t.Helper()
	p := g.profile(profile)
	return g.GPUs.MakeGPUInstance(g.t.Context(), g.uuid, p.ID, machine.Placement{Start: start, Size: p.Placements[0].Size})
}

func (g migGPU) make(profile string, start int) int {
	g.t.Helper()
	id, err := g.try(profile, start)
	if err != nil {
		g.t.Fatalf("making %s at %d: %v", profile, start, err)
	}
	return id
}

// makeWhole makes a GPU instance with a compute instance.
func (g migGPU) makeWhole(profile string, start int) (gpuInstance int, made machine.ComputeInstance) {
	g.t.Helper()
	id := g.make(profile, start)
	made, err := g.GPUs.MakeComputeInstance(g.t.Context(), g.uuid, id)
	must(g.t, err)
	return id, made
}

func (g migGPU) destroy(gpuInstance int) {
	g.t.Helper()
	must(g.t, g.GPUs.DestroyGPUInstance(g.t.Context(), g.uuid, gpuInstance))
}

func (g migGPU) instances() []machine.GPUInstance {
	g.t.Helper()
	p, err := g.GPUs.Partitions(g.t.Context(), g.uuid)
	must(g.t, err)
	if !p.Enabled {
		g.t.Errorf("GPU %s is said not to be in MIG mode", g.uuid)
	}
	return p.Instances
}

// check holds what is reported against what the machine has, and returns it.
func (g migGPU) check() []machine.GPUInstance {
	g.t.Helper()
	state, err := g.Machine.State()
	must(g.t, err)
	is, err := state.Find(g.uuid)
	must(g.t, err)
	got := g.instances()
	if want := is.Describe().MIG.Instances; !reflect.DeepEqual(got, want) {
		g.t.Errorf("partitions are\n%+v, want\n%+v", got, want)
	}
	checkDescription(g.t, g.Fixture, describe(g.t, g.Fixture))
	return got
}

func testMIGMode(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-h100")
	gpu := describe(t, f).GPUs[2]
	must(t, f.GPUs.SetComputeMode(t.Context(), gpu.UUID, machine.ComputeModeExclusiveProcess))
	for _, on := range []bool{false, true, true, false, false, true} {
		must(t, f.GPUs.SetMIGMode(t.Context(), gpu.UUID, on))
		p, err := f.GPUs.Partitions(t.Context(), gpu.UUID)
		if err != nil || p.Enabled != on || p.Instances != nil {
			t.Errorf("switched to %t: %+v, %v", on, p, err)
		}
		d := describe(t, f)
		checkDescription(t, f, d)
		for i, other := range d.GPUs {
			if want := on && i == 2; other.MIG.Enabled != want || other.MIG.Pending != want {
				t.Errorf("switched to %t: GPU %d is %t, and %t pending", on, i, other.MIG.Enabled, other.MIG.Pending)
			}
		}
	}
	if mode, err := f.GPUs.ComputeMode(t.Context(), gpu.UUID); err != nil || mode != machine.ComputeModeDefault {
		t.Errorf("in MIG mode the compute mode is %s, %v", mode, err)
	}
	g := migGPU{Fixture: f, t: t, uuid: gpu.UUID, gpu: gpu}
	id := g.make("1g.10gb", 3)
	if err := f.GPUs.SetMIGMode(t.Context(), gpu.UUID, false); !errors.Is(err, failure.Conflict) {
		t.Errorf("switching off with an instance: %v", err)
	}
	must(t, f.GPUs.SetMIGMode(t.Context(), gpu.UUID, true))
	g.check()
	g.destroy(id)
	must(t, f.GPUs.SetMIGMode(t.Context(), gpu.UUID, false))
}

// testMIGModeNeedsReset: Ampere is not touched, and works once others have switched it.
func testMIGModeNeedsReset(t *testing.T, make func(*testing.T, string) Fixture) {
	f := make(t, "dgx-a100")
	gpu := describe(t, f).GPUs[1]
	if gpu.MIG.OnDemand || !gpu.MIG.Capable {
		t.Errorf("an A100 has %+v", gpu.MIG)
	}
	unchanged := func(enabled, pending bool) {
		t.Helper()
		if got := describe(t, f).GPUs[1].MIG; got.Enabled != enabled || got.Pending != pending {
			t.Errorf("MIG mode is %t, and %t pending, want %t and %t", got.Enabled, got.Pending, enabled, pending)
		}
	}
	must(t, f.GPUs.SetMIGMode(t.Context(), gpu.UUID, false))
	if err := f.GPUs.SetMIGMode(t.Context(), gpu.UUID, true); !errors.Is(err, failure.Unsupported) {
		t.Errorf("switching on: %v", err)
	}
	unchanged(false, false)
	must(t, f.Machine.SetMIGMode(gpu.UUID, true))
	must(t, f.GPUs.SetMIGMode(t.Context(), gpu.UUID, false))
	unchanged(false, true)
	must(t, f.Machine.Reset(gpu.UUID))
	unchanged(true, true)
	must(t, f.GPUs.SetMIGMode(t.Context(), gpu.UUID, true))
	if err := f.GPUs.SetMIGMode(t.Context(), gpu.UUID, false); !errors.Is(err, failure.Unsupported) {
		t.Errorf("switching off: %v", err)
	}
	unchanged(true, true)
	g := migGPU{Fixture: f, t: t, uuid: gpu.UUID, gpu: gpu}
	g.makeWhole(gpu.MIG.Profiles[0].Name, 0)
	g.check()
}
