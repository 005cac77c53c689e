package harness

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// extended is what claimNames calls the claim that Kubernetes makes of extended
// resources; no claim of a Pod's own can be called that.
const extended = ""

// claimNames are the names of a Pod's claims, by how the Pod calls them.
func claimNames(pod *corev1.Pod) map[string]string {
	names := map[string]string{}
	for _, ref := range pod.Spec.ResourceClaims {
		if ref.ResourceClaimName != nil {
			names[ref.Name] = *ref.ResourceClaimName
		}
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil {
			names[s.Name] = *s.ResourceClaimName
		}
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		names[extended] = s.ResourceClaimName
	}
	return names
}

// Claims are a Pod's, whichever way it came by them, as the Pod calls them.
func (c *Cluster) Claims(ctx context.Context, pod *corev1.Pod) (map[string]*resourceapi.ResourceClaim, error) {
	claims := map[string]*resourceapi.ResourceClaim{}
	for ref, name := range claimNames(pod) {
		claim, err := c.Kube.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		claims[ref] = claim
	}
	return claims, nil
}

// Grant is a device that a container is to get.
type Grant struct {
	resourceapi.DeviceRequestAllocationResult
	// Class is the DeviceClass by which it was asked for.
	Class string
}

// Granted lists the devices of this driver that a container of a Pod is to get.
func (c *Cluster) Granted(ctx context.Context, pod *corev1.Pod, container corev1.Container) ([]Grant, error) {
	claims, err := c.Claims(ctx, pod)
	if err != nil {
		return nil, err
	}
	var all []Grant
	for _, wanted := range wantedBy(pod, container) {
		claim := claims[wanted.Name]
		if claim == nil || claim.Status.Allocation == nil {
			return nil, fmt.Errorf("claim %q of Pod %s is not allocated", wanted.Name, pod.Name)
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			if r.Driver == Driver && (wanted.Request == "" || wanted.Request == resourceclaim.BaseRequestRef(r.Request)) {
				all = append(all, Grant{DeviceRequestAllocationResult: r, Class: classOf(claim.Spec.Devices.Requests, r.Request)})
			}
		}
	}
	return all, nil
}

// classOf is the class of a request, or of the subrequest that was chosen.
func classOf(requests []resourceapi.DeviceRequest, name string) string {
	for _, r := range requests {
		if r.Exactly != nil && r.Name == name {
			return r.Exactly.DeviceClassName
		}
		for _, sub := range r.FirstAvailable {
			if resourceclaim.CreateSubRequestRef(r.Name, sub.Name) == name {
				return sub.DeviceClassName
			}
		}
	}
	return ""
}

// Allocated is Granted without the classes.
func (c *Cluster) Allocated(ctx context.Context, pod *corev1.Pod, container corev1.Container) ([]resourceapi.DeviceRequestAllocationResult, error) {
	grants, err := c.Granted(ctx, pod, container)
	results := make([]resourceapi.DeviceRequestAllocationResult, len(grants))
	for i, g := range grants {
		results[i] = g.DeviceRequestAllocationResult
	}
	return results, err
}

// wantedBy lists the claims, or the requests of claims, that a container names.
func wantedBy(pod *corev1.Pod, container corev1.Container) []corev1.ResourceClaim {
	wanted := slices.Clone(container.Resources.Claims)
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		for _, m := range s.RequestMappings {
			if m.ContainerName == container.Name {
				wanted = append(wanted, corev1.ResourceClaim{Name: extended, Request: m.RequestName})
			}
		}
	}
	return wanted
}
