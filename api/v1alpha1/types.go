// Package v1alpha1 is what users write: PartitionClasses, and the parameters of claims
// and device classes for the driver dovetail.dev. The same decoding, defaults and validation
// serve everybody who reads them.
//
// +groupName=dovetail.dev
// +versionName=v1alpha1
package v1alpha1

//go:generate go run ../../hack/tool controller-gen object paths=. crd:crdVersions=v1 output:crd:dir=../../deployments/helm/dovetail/files
//go:generate go run ../../hack/crddoc

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of this package's kinds.
var GroupVersion = schema.GroupVersion{Group: "dovetail.dev", Version: "v1alpha1"}

// Kinds of configuration.
const (
	GPUConfigKind  = "GPUConfig"
	NICConfigKind  = "NICConfig"
	PairConfigKind = "PairConfig"
)

// GPUConfig configures the GPUs of a request: whole ones, partitions, and shares. It
// goes into the opaque parameters of a ResourceClaim or DeviceClass. A field that is
// left out leaves the GPU as it is. A claim's fields win over its class's, one by one,
// but for those that the class has locked.
type GPUConfig struct {
	metav1.TypeMeta `json:",inline"`
	GPUSettings     `json:",inline"`

	// Locked names fields that a claim cannot set: "computeMode", "sharing",
	// "enforcement". In DeviceClasses only.
	Locked []Field `json:"locked,omitempty"`
}

// GPUSettings are the fields that concern GPUs.
type GPUSettings struct {
	// ComputeMode says how many processes may use the GPU at once while the
	// claim is prepared: Default (any number) or ExclusiveProcess (one). What
	// was set before comes back when the claim is released. For whole GPUs.
	ComputeMode *ComputeMode `json:"computeMode,omitempty"`

	// Sharing says how the processes of a claim that several Pods or containers
	// use share its GPU, and how shares of one work.
	Sharing *Sharing `json:"sharing,omitempty"`

	// Enforcement says how well a share's memory must be kept to it: Strict (the driver
	// limits what each container allocates, or the claim is refused), BestEffort (as well
	// as this node can, which the claim's status says) or None. Default: BestEffort.
	Enforcement *Enforcement `json:"enforcement,omitempty"`
}

// NICConfig configures the NICs of a request, in the way of a GPUConfig: NICs, virtual
// functions, and RDMA devices.
type NICConfig struct {
	metav1.TypeMeta `json:",inline"`
	NICSettings     `json:",inline"`

	// Locked names fields that a claim cannot set. In DeviceClasses only.
	Locked []Field `json:"locked,omitempty"`
}

// PairConfig configures pairs of a GPU and a NIC, in the way of a GPUConfig.
type PairConfig struct {
	metav1.TypeMeta `json:",inline"`
	// GPU and NIC are the settings of each.
	GPU GPUSettings `json:"gpu,omitzero"`
	NIC NICSettings `json:"nic,omitzero"`

	// Locked names fields that a claim cannot set: "gpu.sharing", "nic.mtu". In
	// DeviceClasses only.
	Locked []Field `json:"locked,omitempty"`
}

// Field of a configuration that can be locked: each, but for the kind and locked itself.
type Field string

// ComputeMode of a GPU.
type ComputeMode string

// Compute modes that a claim can ask for.
const (
	ComputeModeDefault          ComputeMode = "Default"
	ComputeModeExclusiveProcess ComputeMode = "ExclusiveProcess"
)
