package catalog_test

import (
	"flag"
	"reflect"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/test/packing"
)

var update = flag.Bool("update", false, "write the golden files")

func TestEveryMachine(t *testing.T) {
	names := attributeNames{}
	for _, name := range machines.Names() {
		t.Run(name, func(t *testing.T) {
			m := simulatortest.Describe(t, name)
			pool := catalog.Build(m, catalog.Options{})
			slices := pool.Slices()
			golden(t, name, slices)
			withinLimits(t, slices)
			unique(t, pool)
			names.same(t, pool)
			everythingCounts(t, m, pool)
			policies(t, pool)
			if again := catalog.Build(m, catalog.Options{}).Slices(); !reflect.DeepEqual(again, slices) {
				t.Error("the same machine gives other slices")
			}
		})
	}
}

func TestUnhealthyIsTaintedAlone(t *testing.T) {
	m := simulatortest.Describe(t, "dgx-h100")
	m.GPUs[2].Health = machine.Health{Reason: machine.FaultLost, Message: "gone"}
	for effect, options := range map[resourceapi.DeviceTaintEffect]catalog.Options{
		resourceapi.DeviceTaintEffectNoSchedule: {},
		resourceapi.DeviceTaintEffectNoExecute:  {UnhealthyEffect: resourceapi.DeviceTaintEffectNoExecute},
	} {
		tainted := map[string]int{}
		devices := catalog.Build(m, options).Devices
		for i, d := range m.Devices() {
			want := []resourceapi.DeviceTaint(nil)
			switch {
			case d.Kind == machine.KindMonitor:
				want = []resourceapi.DeviceTaint{{Key: "dovetail.dev/monitor", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
			case d.GPU == &m.GPUs[2]:
				want = []resourceapi.DeviceTaint{{Key: "dovetail.dev/unhealthy", Value: "lost", Effect: effect}}
				tainted[string(d.Kind)]++
			}
			if got := devices[i]; got.Name != d.Name || !reflect.DeepEqual(got.Taints, want) {
				t.Errorf("taints of %s: %+v", got.Name, got.Taints)
			}
		}
		if tainted["gpu"] != 1 || tainted["mig"] != 25 {
			t.Errorf("tainted: %v", tainted)
		}
	}
}

// TestOneToSixteenGPUs: whatever a node has fits into the API's limits.
func TestOneToSixteenGPUs(t *testing.T) {
	models, err := packing.Models()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		for gpus := 1; gpus <= 16; gpus++ {
			described := packing.Machine(m, gpus)
			described.Sharing = fiveSizes
			pool := catalog.Build(*described, catalog.Options{})
			withinLimits(t, pool.Slices())
			policies(t, pool)
			if names := unique(t, pool); names < gpus*(1+len(m.MIG.Profiles)) {
				t.Errorf("%d %s: only %d devices", gpus, m.Name, names)
			}
		}
	}
}

func TestEmptyMachineStillHasASlice(t *testing.T) {
	if slices := catalog.Build(machine.Machine{}, catalog.Options{}).Slices(); len(slices) != 1 {
		t.Errorf("slices: %+v", slices)
	}
}

func TestOddValuesCostNothing(t *testing.T) {
	m := machine.Machine{
		Driver: machine.Driver{Version: "r550-beta"},
		GPUs:   []machine.GPU{{UUID: "GPU-1", ProductName: strings.Repeat("é", 40), Location: machine.Location{NUMANode: -1}}},
	}
	attributes := catalog.Build(m, catalog.Options{}).Devices[0].Attributes
	if got := *attributes["productName"].StringValue; got != strings.Repeat("é", 32) {
		t.Errorf("productName %q", got)
	}
	if got := *attributes["driverVersion"].VersionValue; got != "0.0.0" {
		t.Errorf("driverVersion %q", got)
	}
	if got := *attributes["driverVersionText"].StringValue; got != "r550-beta" {
		t.Errorf("driverVersionText %q", got)
	}
}
