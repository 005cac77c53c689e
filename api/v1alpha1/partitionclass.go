package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PartitionClassKind is the kind of PartitionClass.
const PartitionClassKind = "PartitionClass"

// MaxPartitionClassName is how long the name of a PartitionClass can be, in
// characters: it ends the names of devices, which are DNS labels.
const MaxPartitionClassName = 40

// PartitionClass is an administrator's word for a shape in which GPUs and NICs are
// offered. Dovetail keeps a DeviceClass of the same name for it, which claims, Pods
// and quotas name, and its nodes publish the devices that it takes. The name is a DNS
// label of at most 40 characters that begins with a letter.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pclass,categories=dovetail
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Devices",type=integer,JSONPath=`.status.devices`,description="Devices that the class takes"
// +kubebuilder:printcolumn:name="Allocated",type=integer,JSONPath=`.status.allocated`,description="Devices, and shares of devices, that claims have through the class"
// +kubebuilder:printcolumn:name="Free",type=integer,JSONPath=`.status.free`,description="How many more requests for one device would be satisfied now"
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`,description="Nodes with such devices"
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.spec.extendedResourceName`,priority=1,description="Extended resource for Pods without a claim"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the DeviceClass is as the class says"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name: is too long: want 40 characters at most, since it ends the names of devices",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name: want a letter, then letters, digits and dashes, no dash last, all lower-case",fieldPath=".metadata"
type PartitionClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the administrator wants.
	// +required
	Spec PartitionClassSpec `json:"spec"`
	// Status is what Dovetail has made of it.
	// +optional
	Status PartitionClassStatus `json:"status,omitempty"`
}

// PartitionClassList is a list of PartitionClasses.
//
// +kubebuilder:object:root=true
type PartitionClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PartitionClass `json:"items"`
}

// PartitionClassSpec says which hardware is offered, in which shape, and under which
// names.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:XValidation:rule="!(has(self.shape.nic) || has(self.shape.rdma) || has(self.shape.vf)) || !has(self.hardware) || !has(self.hardware.minMemory)",message="hardware.minMemory: NICs have no memory to select on: remove it"
// +kubebuilder:validation:XValidation:rule="!(has(self.shape.nic) || has(self.shape.rdma) || has(self.shape.vf)) || !has(self.hardware) || !has(self.hardware.architectures)",message="hardware.architectures: NICs have no architecture to select on: remove it"
type PartitionClassSpec struct {
	// Hardware that the class is for. Left out: all that has the shape.
	// +optional
	Hardware Selection `json:"hardware,omitempty,omitzero"`
	// Shape in which the hardware is offered. Exactly one of its fields is set, and
	// which one cannot be changed later: claims would be left with devices of another
	// shape than their class's.
	// +required
	Shape Shape `json:"shape"`
	// ExtendedResourceName serves Pods that ask for devices by their limits, without a
	// claim: `example.com/gpu-small`. Domains that end in kubernetes.io are
	// Kubernetes' own. No two classes, and no device plugin, may have the same name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="want a domain, a slash and a name of at most 63 characters, as example.com/gpu-small"
	// +kubebuilder:validation:XValidation:rule="!self.contains('kubernetes.io/') && !self.startsWith('requests.')",message="domains that end in kubernetes.io and the prefix requests. are Kubernetes' own: use a domain of yours"
	// +kubebuilder:validation:XValidation:rule="self.indexOf('/') <= 244",message="is too long: want 244 characters at most before the slash, to which quotas add a prefix"
	ExtendedResourceName string `json:"extendedResourceName,omitempty"`
	// Published: new claims can have devices through the class. False retires it: nodes
	// publish nothing for it and its DeviceClass takes no device, while those that have
	// one keep it.
	// +optional
	// +kubebuilder:default=true
	Published *bool `json:"published,omitempty"`
}

// Selection says which hardware a class is for. All that is set must hold.
//
// +kubebuilder:object:generate=true
type Selection struct {
	// Products are patterns for the product's name, of which one must match all of it:
	// `*` stands for any characters, `?` for one. Of GPUs, and pairs, it is
	// `productName` (`NVIDIA H100*`), of NICs `model` (`MT4129`).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Products []string `json:"products,omitempty"`
	// MinMemory is the least memory that the GPU has for workloads, without what the
	// driver reserves; also where the class offers only a part of it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="want more than 0, as 70Gi"
	MinMemory *resource.Quantity `json:"minMemory,omitempty"`
	// Architectures of GPUs, as NVML names them: `Hopper`, `Ampere`.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Architectures []string `json:"architectures,omitempty"`
	// NodeSelector picks nodes by their labels.
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`
}

// PartitionClassStatus is what Dovetail has made of a class. The numbers are counted
// from ResourceSlices and ResourceClaims.
//
// +kubebuilder:object:generate=true
type PartitionClassStatus struct {
	// Conditions: Ready, Matched, of a class with an extended resource ExtendedResource
	// and, of one that is being deleted, Deleting.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// DeviceClass that the class has; empty where there is none.
	// +optional
	DeviceClass string `json:"deviceClass,omitempty"`
	// Nodes with such devices.
	// +optional
	Nodes int32 `json:"nodes"`
	// Devices that the class takes, free or not. Of a GPU that can be partitioned in
	// several ways each way is a device. Of shares, a device is what is shared.
	// +optional
	Devices int32 `json:"devices"`
	// Allocated devices, and shares of devices, that claims have through the class.
	// +optional
	Allocated int32 `json:"allocated"`
	// Free: how many more requests for one device, or one share of the class's size,
	// would be satisfied one after another, if nobody asked for anything else. What
	// taints keep away, an administrator's DeviceTaintRules too, is not free. Classes that
	// share hardware each count it as theirs, so their numbers do not add up.
	// +optional
	Free int32 `json:"free"`
}

// Types of conditions of a PartitionClass.
const (
	// ConditionReady: the DeviceClass is as the class says.
	ConditionReady = "Ready"
	// ConditionMatched: there are devices that the class takes.
	ConditionMatched = "Matched"
	// ConditionExtendedResource, of a class that has one: Pods get devices of it that way.
	ConditionExtendedResource = "ExtendedResource"
	// ConditionDeleting: the class is deleted, and goes when no claim has a device
	// through it any more.
	ConditionDeleting = "Deleting"
)
