package catalog

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// OutOfBounds says why no device of a kind, or of any kind where it is empty, ever has so
// much of a capacity, and what would work; it is empty where one may. The scheduler would
// raise a request below the least without a word.
func OutOfBounds(k machine.Kind, capacity string, requested resource.Quantity) string {
	least, most := boundsOf(k, capacity)
	switch {
	case least != nil && requested.Cmp(*least) < 0:
		return fmt.Sprintf("%s is too little: the nearest that works is %s", requested.String(), least)
	case most != nil && requested.Cmp(*most) > 0:
		return fmt.Sprintf("%s is too much: the nearest that works is %s", requested.String(), most)
	}
	return ""
}

// boundsOf are the least and the most that can be asked of a capacity; nil: there is none.
func boundsOf(k machine.Kind, capacity string) (least, most *resource.Quantity) {
	zero := resource.NewQuantity(0, resource.DecimalSI)
	switch {
	case !k.SharesGPU():
		return zero, nil
	case capacity == "memory":
		return resource.NewQuantity(machine.MinShare, resource.BinarySI), nil
	case capacity == "compute":
		return zero, resource.NewQuantity(100, resource.DecimalSI)
	}
	return resource.NewQuantity(1, resource.DecimalSI), nil
}
