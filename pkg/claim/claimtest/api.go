package claimtest

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
)

// Allocate puts a claim on devices into the API, reserved for a Pod. Parameters
// are the claim's opaque configuration, or empty.
func (w *World) Allocate(name, parameters string, devices ...string) (*resourceapi.ResourceClaim, error) {
	c := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Status: resourceapi.ResourceClaimStatus{
			Allocation:  &resourceapi.AllocationResult{},
			ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: "pod"}},
		},
	}
	for _, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "gpu", Driver: catalog.DriverName, Pool: Pool, Device: d,
		})
	}
	if parameters != "" {
		c.Status.Allocation.Devices.Config = []resourceapi.DeviceAllocationConfiguration{Config(resourceapi.AllocationConfigSourceClaim, parameters)}
	}
	return c, w.Store(c)
}

// Config is a configuration as an allocation has it.
func Config(source resourceapi.AllocationConfigSource, parameters string, requests ...string) resourceapi.DeviceAllocationConfiguration {
	return resourceapi.DeviceAllocationConfiguration{
		Source: source, Requests: requests,
		DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver: catalog.DriverName, Parameters: runtime.RawExtension{Raw: []byte(parameters)},
		}},
	}
}

// Exclusive is a configuration that takes a hardware step.
const Exclusive = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","computeMode":"ExclusiveProcess"}`

// Admin turns all of a claim's devices into admin access.
func Admin(c *resourceapi.ResourceClaim) {
	for i := range c.Status.Allocation.Devices.Results {
		c.Status.Allocation.Devices.Results[i].AdminAccess = ptr.To(true)
	}
}

// Store writes a claim to the API.
func (w *World) Store(c *resourceapi.ResourceClaim) error {
	content, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(w.path("api", c.Name+".json"), content, 0o600)
}

// Delete removes a claim from the API.
func (w *World) Delete(name string) error { return os.Remove(w.path("api", name+".json")) }

// Claim reads a claim from the API; failure.Absent where there is none.
func (w *World) Claim(name string) (*resourceapi.ResourceClaim, error) {
	content, err := os.ReadFile(w.path("api", name+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, failure.New(failure.Absent, "claim %s does not exist", name)
	}
	if err != nil {
		return nil, err
	}
	c := &resourceapi.ResourceClaim{}
	return c, json.Unmarshal(content, c)
}

func (w *World) live(_ context.Context, ref journal.Claim) (*resourceapi.ResourceClaim, error) {
	c, err := w.Claim(ref.Name)
	if err == nil && string(c.UID) != ref.UID {
		return nil, failure.New(failure.Absent, "claim %s is another one now", ref)
	}
	return c, err
}

func (w *World) inUse(_ context.Context, ref journal.Claim) (bool, error) {
	return w.InUse[ref.Name], nil
}

// Reference names a claim as the kubelet does when it releases it.
func Reference(c *resourceapi.ResourceClaim) journal.Claim {
	return journal.Claim{Namespace: c.Namespace, Name: c.Name, UID: string(c.UID)}
}
