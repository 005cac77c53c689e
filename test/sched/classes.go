package sched

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// ClassName of the chart's DeviceClass for a kind of device.
func ClassName(kind machine.Kind) string { return string(kind) + "." + catalog.DriverName }

// classes are the chart's, one a kind.
type classes struct{}

func (classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, kind := range machine.Kinds {
		if ClassName(kind) == name {
			return class(kind), nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

func (classes) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	for _, kind := range machine.Kinds {
		all = append(all, class(kind))
	}
	return all, nil
}

// expression is the class's selector as it stands in the chart, which the test
// compares.
func expression(kind machine.Kind) string {
	return strings.ReplaceAll(fmt.Sprintf(`device.driver == "DRIVER" && device.attributes["DRIVER"].type == %q`, kind), "DRIVER", catalog.DriverName)
}

func class(kind machine.Kind) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: ClassName(kind)},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{
			CEL: &resourceapi.CELDeviceSelector{Expression: expression(kind)},
		}}},
	}
}
