package harness

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Claims are a Pod's, whichever way it came by them.
func (c *Cluster) Claims(ctx context.Context, pod *corev1.Pod) ([]*resourceapi.ResourceClaim, error) {
	var names []string
	for _, ref := range pod.Spec.ResourceClaims {
		if ref.ResourceClaimName != nil {
			names = append(names, *ref.ResourceClaimName)
		}
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil {
			names = append(names, *s.ResourceClaimName)
		}
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		names = append(names, s.ResourceClaimName)
	}
	var claims []*resourceapi.ResourceClaim
	for _, name := range names {
		claim, err := c.Kube.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// Allocated lists what is allocated to all of a Pod's claims of this driver.
func (c *Cluster) Allocated(ctx context.Context, pod *corev1.Pod) ([]resourceapi.DeviceRequestAllocationResult, error) {
	claims, err := c.Claims(ctx, pod)
	if err != nil {
		return nil, err
	}
	var all []resourceapi.DeviceRequestAllocationResult
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			return nil, fmt.Errorf("claim %s of Pod %s is not allocated", claim.Name, pod.Name)
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			if r.Driver == Driver {
				all = append(all, r)
			}
		}
	}
	return all, nil
}
