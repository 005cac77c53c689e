package sched

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Request asks for one device of the kind, which every selector must be true of.
func Request(name string, kind machine.Kind, selectors ...string) resourceapi.DeviceRequest {
	return RequestOf(name, ClassName(kind), selectors...)
}

// RequestOf asks for one device of a class.
func RequestOf(name, class string, selectors ...string) resourceapi.DeviceRequest {
	exactly := &resourceapi.ExactDeviceRequest{
		DeviceClassName: class,
		// What the API server fills in; the allocator does not.
		AllocationMode: resourceapi.DeviceAllocationModeExactCount,
		Count:          1,
	}
	for _, s := range selectors {
		exactly.Selectors = append(exactly.Selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: s}})
	}
	return resourceapi.DeviceRequest{Name: name, Exactly: exactly}
}

// Several is the request for so many devices instead of one.
func Several(count int64, request resourceapi.DeviceRequest) resourceapi.DeviceRequest {
	request.Exactly = request.Exactly.DeepCopy()
	request.Exactly.Count = count
	return request
}

// Profile is a selector for partitions of a profile.
func Profile(name string) string {
	return fmt.Sprintf("device.attributes[%q].profile == %q", catalog.DriverName, name)
}

// AtLeast is a selector for devices with that much memory: "15Gi".
func AtLeast(memory string) string {
	return fmt.Sprintf("device.capacity[%q].memory.compareTo(quantity(%q)) >= 0", catalog.DriverName, memory)
}

// Share asks for one share of a device of the kind, with so much of its capacity:
// "memory=10Gi".
func Share(name string, kind machine.Kind, capacity ...string) resourceapi.DeviceRequest {
	request := Request(name, kind)
	wants := map[resourceapi.QualifiedName]resource.Quantity{}
	for _, c := range capacity {
		of, amount, _ := strings.Cut(c, "=")
		wants[resourceapi.QualifiedName(of)] = resource.MustParse(amount)
	}
	request.Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: wants}
	return request
}

// Claim is a claim with a UID of its name, not yet allocated.
func Claim(name string, requests ...resourceapi.DeviceRequest) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests}},
	}
}

// Match adds the constraint that all requests' devices have the attribute in common;
// Distinct, that no two have. Both return the claim.
func Match(claim *resourceapi.ResourceClaim, attribute string) *resourceapi.ResourceClaim {
	return constrain(claim, resourceapi.DeviceConstraint{MatchAttribute: qualified(attribute)})
}

// Distinct is the opposite of Match.
func Distinct(claim *resourceapi.ResourceClaim, attribute string) *resourceapi.ResourceClaim {
	return constrain(claim, resourceapi.DeviceConstraint{DistinctAttribute: qualified(attribute)})
}

func constrain(claim *resourceapi.ResourceClaim, constraint resourceapi.DeviceConstraint) *resourceapi.ResourceClaim {
	claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, constraint)
	return claim
}

// qualified is the attribute with its domain: the driver's, where none is said.
func qualified(attribute string) *resourceapi.FullyQualifiedName {
	if !strings.Contains(attribute, "/") {
		attribute = catalog.DriverName + "/" + attribute
	}
	name := resourceapi.FullyQualifiedName(attribute)
	return &name
}
