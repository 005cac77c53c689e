package admission

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// request is a request, or one alternative of several.
type request struct {
	path      *field.Path
	name      string // "request/subrequest" of an alternative
	class     string
	selectors []resourceapi.DeviceSelector
	capacity  *resourceapi.CapacityRequirements
	admin     bool
	tolerant  bool // of the taint that monitors have
}

// requestsOf a claim, at path: as many as the API server takes, which refuses the others
// itself.
func requestsOf(devices *resourceapi.DeviceClaim, path *field.Path) []request {
	var all []request
	for i, r := range devices.Requests[:min(len(devices.Requests), resourceapi.DeviceRequestsMaxSize)] {
		path := path.Child("requests").Index(i)
		if e := r.Exactly; e != nil {
			all = append(all, request{
				path: path.Child("exactly"), name: r.Name, class: e.DeviceClassName,
				selectors: e.Selectors, capacity: e.Capacity, tolerant: toleratesMonitors(e.Tolerations), admin: ptr.Deref(e.AdminAccess, false),
			})
		}
		for j, s := range r.FirstAvailable[:min(len(r.FirstAvailable), resourceapi.FirstAvailableDeviceRequestMaxSize)] {
			all = append(all, request{
				path: path.Child("firstAvailable").Index(j), name: r.Name + "/" + s.Name, class: s.DeviceClassName,
				selectors: s.Selectors, capacity: s.Capacity, tolerant: toleratesMonitors(s.Tolerations),
			})
		}
	}
	return all
}

func toleratesMonitors(tolerations []resourceapi.DeviceToleration) bool {
	return slices.ContainsFunc(tolerations, func(t resourceapi.DeviceToleration) bool { return t.Key == "" || t.Key == catalog.TaintMonitor })
}
