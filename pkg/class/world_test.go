package class_test

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// partitionClass of that name; spec is YAML.
func partitionClass(t *testing.T, name, spec string) v1alpha1.PartitionClass {
	t.Helper()
	var c v1alpha1.PartitionClass
	if err := yaml.UnmarshalStrict([]byte(fmt.Sprintf("metadata: {name: %s}\nspec: %s", name, spec)), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func compiled(t *testing.T, name, spec string) *class.Class {
	t.Helper()
	pc := partitionClass(t, name, spec)
	c, err := class.Compile(&pc)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// device that is published, and what it is made of.
type device struct {
	machine.Device
	built resourceapi.Device
}

// publish are the devices of a machine that its agent publishes for the classes.
func publish(t *testing.T, m machine.Machine, wanted *class.Wanted) []device {
	t.Helper()
	offer, err := wanted.Offer(&m)
	if err != nil {
		t.Fatal(err)
	}
	if err := offer.Machine.Sharing.Validate(); err != nil {
		t.Fatal(err)
	}
	var devices []device
	for _, built := range catalog.Build(offer.Machine, catalog.Options{Offer: offer}).Devices {
		d, ok := offer.Machine.Device(built.Name)
		if !ok {
			t.Fatalf("the machine has no device %s", built.Name)
		}
		devices = append(devices, device{d, built})
	}
	return devices
}

var compiler = cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})

var programs = map[string]cel.CompilationResult{}

func evaluate(t *testing.T, spec resourceapi.DeviceClassSpec, d cel.Device) bool {
	t.Helper()
	for _, selector := range spec.Selectors {
		expression := selector.CEL.Expression
		program, ok := programs[expression]
		if !ok {
			program = compiler.CompileCELExpression(expression, cel.Options{})
			programs[expression] = program
		}
		if program.Error != nil {
			t.Fatalf("%s: %v", expression, program.Error)
		}
		ok, _, err := program.DeviceMatches(t.Context(), d)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
		}
		if !ok {
			return false
		}
	}
	return true
}

// takes asks the selectors of the class, as the scheduler does.
func takes(t *testing.T, c *class.Class, d resourceapi.Device) bool {
	t.Helper()
	return evaluate(t, c.DeviceClass(), cel.Device{
		Driver: catalog.DriverName, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity,
	})
}

func text(s string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: ptr.To(s)}
}
