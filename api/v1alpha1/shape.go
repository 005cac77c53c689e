package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Shape in which hardware is offered: exactly one of the fields.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:XValidation:rule="[has(self.mig), has(self.mps), has(self.timeSlice), has(self.gpu), has(self.pair), has(self.nic), has(self.rdma), has(self.vf)].filter(s, s).size() == 1",message="want exactly one of mig, mps, timeSlice, gpu, pair, nic, rdma and vf: for two shapes make two classes"
// +kubebuilder:validation:XValidation:rule="has(self.mig) == has(oldSelf.mig) && has(self.mps) == has(oldSelf.mps) && has(self.timeSlice) == has(oldSelf.timeSlice) && has(self.gpu) == has(oldSelf.gpu) && has(self.pair) == has(oldSelf.pair) && has(self.nic) == has(oldSelf.nic) && has(self.rdma) == has(oldSelf.rdma) && has(self.vf) == has(oldSelf.vf)",message="which shape it is cannot be changed, since claims may have devices of the old one: make another class"
type Shape struct {
	// MIG: partitions of GPUs.
	// +optional
	MIG *MIGShape `json:"mig,omitempty"`
	// MPS: shares of GPUs by NVIDIA's Multi-Process Service, side by side.
	// +optional
	MPS *MPSShape `json:"mps,omitempty"`
	// TimeSlice: shares of GPUs that run in turn.
	// +optional
	TimeSlice *TimeSliceShape `json:"timeSlice,omitempty"`
	// GPU: whole GPUs.
	// +optional
	GPU *GPUShape `json:"gpu,omitempty"`
	// Pair: GPUs, each with a NIC that is near.
	// +optional
	Pair *PairShape `json:"pair,omitempty"`
	// NIC: whole NICs.
	// +optional
	NIC *NICShape `json:"nic,omitempty"`
	// RDMA: the RDMA devices of NICs that stay with the host.
	// +optional
	RDMA *NICShape `json:"rdma,omitempty"`
	// VF: virtual functions of NICs.
	// +optional
	VF *NICShape `json:"vf,omitempty"`
}

// MIGShape is one size of partition: by its profile, or by its memory.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:XValidation:rule="has(self.profile) != has(self.memory)",message="want either profile or memory"
type MIGShape struct {
	// Profile as NVIDIA writes it: `1g.10gb`, `1g.10gb+me`.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*g[.][1-9][0-9]*gb([+-][a-z.]+)?$')",message="want a profile as NVIDIA writes it, as 1g.10gb: dovetail-node inventory --profiles lists a node's"
	Profile string `json:"profile,omitempty"`
	// Memory: of each model of GPU the one smallest profile that has this much for
	// workloads, so that one class serves different models. A `1g.10gb` has a little
	// less than 10Gi: `dovetail-node inventory --profiles` lists what there is.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('1Mi'))",message="want 1Mi at least, as 10G"
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// MPSShape is shares by MPS, of one size if memory is set, else of as much as each
// claim requests.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:XValidation:rule="!has(self.compute) || has(self.memory)",message="compute: needs memory, since both together are the share's size"
type MPSShape struct {
	// Memory of one share.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('1Mi'))",message="want 1Mi at least, as 10Gi"
	Memory *resource.Quantity `json:"memory,omitempty"`
	// Compute is the percentage of the GPU's multiprocessors that one share reserves,
	// and is held to. Left out, nothing is reserved or held.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Compute int32 `json:"compute,omitempty"`
	// Enforcement of the memory: Strict, BestEffort or None. Set, it is locked: claims
	// cannot change it. Default: BestEffort, and claims decide.
	// +optional
	// +kubebuilder:validation:Enum=Strict;BestEffort;None
	Enforcement *Enforcement `json:"enforcement,omitempty"`
}

// TimeSliceShape is shares that run in turn, of one size if clients or memory is set.
//
// +kubebuilder:object:generate=true
type TimeSliceShape struct {
	// Clients is how many claims at most have a share of one GPU. Left out, it is as
	// the node's administrator says.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Clients int32 `json:"clients,omitempty"`
	// Memory of one share. Left out where clients is set: an equal part for each.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('1Mi'))",message="want 1Mi at least, as 10Gi"
	Memory *resource.Quantity `json:"memory,omitempty"`
	// Interval is how long the GPU works for one process before it turns to the next:
	// Default, Short, Medium or Long. Set, it is locked: claims cannot change how the
	// GPU is shared.
	// +optional
	// +kubebuilder:validation:Enum=Default;Short;Medium;Long
	Interval *Interval `json:"interval,omitempty"`
}

// GPUShape is whole GPUs.
//
// +kubebuilder:object:generate=true
type GPUShape struct{}

// PairShape is pairs of a GPU and a NIC.
//
// +kubebuilder:object:generate=true
type PairShape struct {
	// Closeness is how far apart GPU and NIC are at most: PIX (one PCIe switch), PXB
	// (several switches), PHB (one host bridge), NODE (one NUMA node) or SYS. Pairs
	// that an administrator has declared always match. Left out: any.
	// +optional
	// +kubebuilder:validation:Enum=PIX;PXB;PHB;NODE;SYS
	Closeness Closeness `json:"closeness,omitempty"`
	// Lossless: only with NICs that have priority flow control.
	// +optional
	Lossless bool `json:"lossless,omitempty"`
}

// NICShape is NICs, whole or shared.
//
// +kubebuilder:object:generate=true
type NICShape struct {
	// Lossless: only NICs that have priority flow control.
	// +optional
	Lossless bool `json:"lossless,omitempty"`
}

// Closeness of two devices in the PCI tree, in NVIDIA's words.
type Closeness string

// Closenesses, the nearest first.
const (
	ClosenessPIX  Closeness = "PIX"
	ClosenessPXB  Closeness = "PXB"
	ClosenessPHB  Closeness = "PHB"
	ClosenessNODE Closeness = "NODE"
	ClosenessSYS  Closeness = "SYS"
)

// Closenesses are all of them, the nearest first.
var Closenesses = []Closeness{ClosenessPIX, ClosenessPXB, ClosenessPHB, ClosenessNODE, ClosenessSYS}
