package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// quarters is a GPU with four memory units: two profiles, MIG on demand.
func quarters() *machine.Machine {
	return &machine.Machine{GPUs: []machine.GPU{{
		UUID: "GPU-a", Address: machine.Address{Bus: 0x1b},
		MIG: machine.MIG{Capable: true, OnDemand: true, Profiles: []machine.MIGProfile{
			{ID: 14, Name: "1g.6gb", ComputeSlices: 1, Placements: []machine.Placement{{Start: 0, Size: 1}, {Start: 3, Size: 1}}},
			{ID: 0, Name: "4g.24gb", ComputeSlices: 4, Placements: []machine.Placement{{Start: 0, Size: 4}}},
		}},
	}}}
}

func TestPartition(t *testing.T) {
	m := quarters()
	p, err := Prepare(Allocation{Results: []Result{{Request: "r", Device: "mig-1b-00-1g6gb-3"}}}, m)
	if err != nil {
		t.Fatal(err)
	}
	partition := &Partition{Device: "mig-1b-00-1g6gb-3", Profile: "1g.6gb", ProfileID: 14, Placement: machine.Placement{Start: 3, Size: 1}}
	want := Plan{
		Locks: []string{"gpu-1b-00"},
		Holds: []string{"mig-1b-00-1g6gb-3", "gpu-1b-00/memory-unit-3"},
		Steps: []Step{
			{Kind: EnableMIG, GPU: "GPU-a"},
			{Kind: MakeGPUInstance, GPU: "GPU-a", Partition: partition},
			{Kind: MakeComputeInstance, GPU: "GPU-a", Partition: partition},
		},
		Devices: []Device{{Request: "r", Name: "mig-1b-00-1g6gb-3", Kind: machine.KindMIG, GPU: "GPU-a", Placement: &machine.Placement{Start: 3, Size: 1}}},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got\n%+v, want\n%+v", p, want)
	}

	m.GPUs[0].MIG.Enabled, m.GPUs[0].MIG.OnDemand = true, false
	p, err = Prepare(Allocation{Results: []Result{{Request: "r", Device: "mig-1b-00-1g6gb-3"}}}, m)
	if err != nil || !reflect.DeepEqual(p.Steps, want.Steps[1:]) {
		t.Errorf("where MIG mode cannot be switched: %+v, %v", p.Steps, err)
	}
}

func TestStaticPartitionIsTakenAsItIs(t *testing.T) {
	m := quarters()
	m.GPUs[0].MIG.Enabled = true
	instance := machine.GPUInstance{
		ID: 7, ProfileID: 14, Placement: machine.Placement{Start: 0, Size: 1},
		ComputeInstances: []machine.ComputeInstance{{ComputeSlices: 1, UUID: "MIG-1"}},
	}
	m.GPUs[0].MIG.Instances = []machine.GPUInstance{instance}
	for _, admin := range []bool{false, true} {
		p, err := Prepare(Allocation{Results: []Result{{Request: "r", Device: "mig-1b-00-1g6gb-0", AdminAccess: admin}}}, m)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Steps) > 0 || len(p.Devices) != 1 || !reflect.DeepEqual(p.Devices[0].Static, &instance) {
			t.Errorf("got %+v", p)
		}
	}
}

// What overlaps clashes, whatever it is called.
func TestHoldsClashWhereDevicesOverlap(t *testing.T) {
	holds := func(device string) []string {
		t.Helper()
		p, err := Prepare(Allocation{Results: []Result{{Request: "r", Device: device}}}, quarters())
		if err != nil {
			t.Fatal(err)
		}
		return p.Holds
	}
	for _, test := range []struct {
		a, b  string
		clash bool
	}{
		{"gpu-1b-00", "mig-1b-00-1g6gb-3", true},
		{"gpu-1b-00", "mig-1b-00-4g24gb-0", true},
		{"mig-1b-00-4g24gb-0", "mig-1b-00-1g6gb-3", true},
		{"mig-1b-00-1g6gb-0", "mig-1b-00-1g6gb-3", false},
	} {
		a, b := holds(test.a), holds(test.b)
		if clash := slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) }); clash != test.clash {
			t.Errorf("%s and %s: clash %t, want %t (%q, %q)", test.a, test.b, clash, test.clash, a, b)
		}
	}
}

func TestPartitionRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		result Result
		words  string
	}{
		"a look at what does not exist": {Result{Request: "r", Device: "mig-1b-00-1g6gb-3", AdminAccess: true}, "claim monitor.dovetail.dev"},
		"a compute mode":                {Result{Request: "r", Device: "mig-1b-00-1g6gb-3", Config: Config{ComputeMode: machine.ComputeModeExclusiveProcess}}, "computeMode: ExclusiveProcess"},
	} {
		_, err := Prepare(Allocation{Results: []Result{test.result}}, quarters())
		if failure.ClassOf(err) != failure.Invalid || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
