package admission

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// request is a request, or one alternative of several.
type request struct {
	path      *field.Path
	name      string // "request/subrequest" of an alternative
	class     string
	selectors []resourceapi.DeviceSelector
	capacity  *resourceapi.CapacityRequirements
	admin     bool
}

// requestsOf a claim, at path.
func requestsOf(devices *resourceapi.DeviceClaim, path *field.Path) []request {
	var all []request
	for i, r := range devices.Requests {
		path := path.Child("requests").Index(i)
		if e := r.Exactly; e != nil {
			all = append(all, request{
				path: path.Child("exactly"), name: r.Name, class: e.DeviceClassName,
				selectors: e.Selectors, capacity: e.Capacity, admin: ptr.Deref(e.AdminAccess, false),
			})
		}
		for j, s := range r.FirstAvailable {
			all = append(all, request{
				path: path.Child("firstAvailable").Index(j), name: r.Name + "/" + s.Name, class: s.DeviceClassName,
				selectors: s.Selectors, capacity: s.Capacity,
			})
		}
	}
	return all
}
