package compact

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// Claim is for informers: it returns a ResourceClaim with what is allocated to it of
// this driver's, and through which requests; and anything else as it is.
func Claim(object any) (any, error) {
	claim, ok := object.(*resourceapi.ResourceClaim)
	if !ok {
		return object, nil
	}
	small := &resourceapi.ResourceClaim{ObjectMeta: identity(&claim.ObjectMeta)}
	if claim.Status.Allocation == nil {
		return small, nil
	}
	var results []resourceapi.DeviceRequestAllocationResult
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.Driver == catalog.DriverName {
			results = append(results, resourceapi.DeviceRequestAllocationResult{
				Request: r.Request, Driver: catalog.DriverName, Pool: r.Pool, Device: r.Device,
				AdminAccess: r.AdminAccess, ShareID: r.ShareID, ConsumedCapacity: r.ConsumedCapacity,
			})
		}
	}
	if len(results) == 0 {
		return small, nil
	}
	small.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: results}}
	for _, r := range claim.Spec.Devices.Requests {
		small.Spec.Devices.Requests = append(small.Spec.Devices.Requests, request(r))
	}
	return small, nil
}

func request(r resourceapi.DeviceRequest) resourceapi.DeviceRequest {
	small := resourceapi.DeviceRequest{Name: r.Name}
	if r.Exactly != nil {
		small.Exactly = &resourceapi.ExactDeviceRequest{DeviceClassName: r.Exactly.DeviceClassName}
	}
	for _, sub := range r.FirstAvailable {
		small.FirstAvailable = append(small.FirstAvailable, resourceapi.DeviceSubRequest{Name: sub.Name, DeviceClassName: sub.DeviceClassName})
	}
	return small
}
