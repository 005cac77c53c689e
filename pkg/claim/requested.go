package claim

import (
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// checkRequested refuses a request for capacity that no device of the kind has, with
// failure.Invalid: the scheduler makes the least of what is less. Who checks claims when
// they are made refuses the same, where it is asked.
func checkRequested(c *resourceapi.ResourceClaim, request string, k machine.Kind) error {
	requested := capacityOf(c, request)
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		if why := catalog.OutOfBounds(k, string(name), requested[name]); why != "" {
			return failure.New(failure.Invalid, "request %s: capacity.requests[%s]: %s: the claim has to be made again", request, name, why)
		}
	}
	return nil
}

// capacityOf is what a request ("request/subrequest" for one of several alternatives)
// asks for; nil where it asks for none.
func capacityOf(c *resourceapi.ResourceClaim, request string) map[resourceapi.QualifiedName]resource.Quantity {
	for _, r := range c.Spec.Devices.Requests {
		if r.Name == request && r.Exactly != nil && r.Exactly.Capacity != nil {
			return r.Exactly.Capacity.Requests
		}
		for _, s := range r.FirstAvailable {
			if r.Name+"/"+s.Name == request && s.Capacity != nil {
				return s.Capacity.Requests
			}
		}
	}
	return nil
}
