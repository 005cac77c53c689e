package catalog_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestOutOfBounds(t *testing.T) {
	for _, test := range []struct {
		kind                machine.Kind
		capacity, requested string
		want                string
	}{
		{machine.KindMPS, "memory", "0", "0 is too little: the nearest that works is 1Mi"},
		{machine.KindTimeSlice, "memory", "10Ki", "10Ki is too little: the nearest that works is 1Mi"},
		{machine.KindMPS, "memory", "1500Ki", ""},
		{machine.KindMPS, "memory", "500Gi", ""}, // another node may have it
		{machine.KindMPS, "compute", "0", ""},
		{machine.KindMPS, "compute", "100", ""},
		{machine.KindMPS, "compute", "101", "101 is too much: the nearest that works is 100"},
		{machine.KindMPS, "clients", "0", "0 is too little: the nearest that works is 1"},
		{machine.KindGPU, "memory", "0", ""},
		{machine.KindGPU, "memory", "-1Gi", "-1Gi is too little: the nearest that works is 0"},
		{"", "memory", "0", ""},
	} {
		if got := catalog.OutOfBounds(test.kind, test.capacity, resource.MustParse(test.requested)); got != test.want {
			t.Errorf("%s %s of %q: %q, want %q", test.requested, test.capacity, test.kind, got, test.want)
		}
	}
}

// What is refused is just what no device's policy allows.
func TestBoundsAreThePolicies(t *testing.T) {
	m := simulatortest.Describe(t, "dgx-h100")
	for _, kind := range []machine.Kind{machine.KindMPS, machine.KindTimeSlice} {
		device, ok := m.Device(string(kind) + "-1b-00")
		if !ok {
			t.Fatalf("no device of type %s", kind)
		}
		for _, d := range catalog.Build(m, catalog.Options{}).Devices {
			if d.Name != device.Name {
				continue
			}
			for name, c := range d.Capacity {
				least := c.RequestPolicy.ValidRange.Min.DeepCopy()
				if why := catalog.OutOfBounds(kind, string(name), least); why != "" {
					t.Errorf("%s of %s: the least of the policy: %s", name, kind, why)
				}
				least.Sub(resource.MustParse("1"))
				if catalog.OutOfBounds(kind, string(name), least) == "" {
					t.Errorf("%s of %s: %v passes, and is less than the policy's least", name, kind, &least)
				}
			}
		}
	}
}
