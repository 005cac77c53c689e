package sched

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// ClassName of the chart's DeviceClass for a kind of device.
func ClassName(kind machine.Kind) string { return string(kind) + "." + catalog.DriverName }

// classes are the chart's, in its order: one a kind, and one a size of share.
type classes []*resourceapi.DeviceClass

func plainClasses() classes {
	var all classes
	for _, kind := range machine.Kinds {
		all = append(all, class(ClassName(kind), expression(kind, "")))
	}
	return all
}

// Offer adds the class of a size, as the chart makes it.
func (s *Scheduler) Offer(size machine.Size) {
	s.classes = append(s.classes, class(size.Name, expression(size.Kind, size.Name)))
}

// Add a DeviceClass.
func (s *Scheduler) Add(name string, spec resourceapi.DeviceClassSpec) {
	added := class(name, "")
	added.Spec = spec
	s.classes = append(s.classes, added)
}

// OfferClass adds a DeviceClass.
func (s *Scheduler) OfferClass(name string, spec resourceapi.DeviceClassSpec) {
	s.classes = append(s.classes, &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
}

// RequestOfExtended is the request that a Pod makes who has count of an extended resource in
// its limits, and no claim: of the class that has the resource, for nothing but a number
// of devices (the scheduler's plugin dynamicresources). The name of no class is empty.
func (s *Scheduler) RequestOfExtended(resource string, count int64) resourceapi.DeviceRequest {
	name := ""
	for _, c := range s.classes {
		if c.Spec.ExtendedResourceName != nil && *c.Spec.ExtendedResourceName == resource {
			name = c.Name
		}
	}
	request := RequestOf("container-0-request-0", name)
	request.Exactly.Count = count
	return request
}

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return c, nil }

// expression is the class's selector as it stands in the chart, which the test
// compares.
func expression(kind machine.Kind, size string) string {
	expression := fmt.Sprintf(`device.driver == %q && device.attributes[%q].type == %q`, catalog.DriverName, catalog.DriverName, kind)
	if kind.SharesGPU() {
		expression += fmt.Sprintf(` && device.attributes[%q].partitionClass == %q`, catalog.DriverName, size)
	}
	return expression
}

func class(name, expression string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{
			CEL: &resourceapi.CELDeviceSelector{Expression: expression},
		}}},
	}
}
