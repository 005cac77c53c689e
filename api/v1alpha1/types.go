// Package v1alpha1 is what users write: the parameters of claims and device
// classes for the driver dovetail.dev. The same decoding, defaults and validation
// serve everybody who reads them.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of this package's kinds.
var GroupVersion = schema.GroupVersion{Group: "dovetail.dev", Version: "v1alpha1"}

// GPUConfigKind is the kind of GPUConfig.
const GPUConfigKind = "GPUConfig"

// GPUConfig configures the GPUs of a request. It goes into the opaque parameters
// of a ResourceClaim or DeviceClass. A field that is left out leaves the GPU as it
// is. A claim's fields win over its class's, one by one.
type GPUConfig struct {
	metav1.TypeMeta `json:",inline"`

	// ComputeMode says how many processes may use the GPU at once while the
	// claim is prepared: Default (any number) or ExclusiveProcess (one). What
	// was set before comes back when the claim is released.
	ComputeMode *ComputeMode `json:"computeMode,omitempty"`
}

// ComputeMode of a GPU.
type ComputeMode string

// Compute modes that a claim can ask for.
const (
	ComputeModeDefault          ComputeMode = "Default"
	ComputeModeExclusiveProcess ComputeMode = "ExclusiveProcess"
)

// Merge sets in c each field that over sets.
func (c *GPUConfig) Merge(over *GPUConfig) {
	if over.ComputeMode != nil {
		c.ComputeMode = over.ComputeMode
	}
}

// DeepCopyObject implements runtime.Object.
func (c *GPUConfig) DeepCopyObject() runtime.Object {
	if c == nil {
		return nil
	}
	out := &GPUConfig{TypeMeta: c.TypeMeta}
	out.Merge(c)
	return out
}
