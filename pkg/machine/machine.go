// Package machine describes a node's hardware as plain values: GPUs, how they
// can be partitioned, where they sit, and the names under which they are
// offered. It reads nothing and changes nothing; adapters fill it in.
package machine

import "slices"

// Machine is a node's hardware at one moment. GPUs are in the order of their
// PCI addresses, which is the order in which everything is published.
type Machine struct {
	// BootID changes at each boot (/proc/sys/kernel/random/boot_id, random(4)).
	BootID string `json:"bootID"`
	// CgroupV2 says that containers are in the unified hierarchy (cgroups(7)).
	CgroupV2 bool   `json:"cgroupV2,omitempty"`
	Driver   Driver `json:"driver"`
	GPUs     []GPU  `json:"gpus"`
	// NICs in the order of their addresses, also those that are not offered.
	NICs []NIC `json:"nics,omitempty"`
	// RDMANodes are the character devices that every user of RDMA needs beside its
	// device's own: "/dev/infiniband/rdma_cm", where the kernel has it.
	RDMANodes []string `json:"rdmaNodes,omitempty"`
	// RDMAExclusive says that an RDMA device can only be used in the network namespace
	// that it is in (rdma-system(8), "exclusive").
	RDMAExclusive bool    `json:"rdmaExclusive,omitempty"`
	Faults        []Fault `json:"faults,omitempty"`
	// Sharing and Network are the administrator's word, not the hardware's.
	Sharing Sharing `json:"sharing,omitzero"`
	Network Network `json:"network,omitzero"`
}

// Driver is the NVIDIA driver as NVML reports it. Versions are the driver's own
// text: "550.163.01" is no semantic version and must not lose its zeros.
type Driver struct {
	Version string `json:"version"`
	// CUDA is the highest CUDA version that the driver supports.
	CUDA Version `json:"cuda"`
}

// Fault is a device that is there but cannot be offered, or not fully, with the
// reason in words for the person on call. It never costs other devices their
// place.
type Fault struct {
	// Device is the best name that the device has: PCI address, UUID or index.
	Device string `json:"device"`
	// Kind is a short fixed word for metrics: "lost", "reset-required", ...
	Kind FaultKind `json:"kind"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`
}

// AllNICs is the device of a fault for which no NIC can be described.
const AllNICs = "NICs"

// FaultKind is a bounded set, fit for a metric's label.
type FaultKind string

// Kinds of fault.
const (
	FaultLost          FaultKind = "lost"           // fell off the bus
	FaultResetRequired FaultKind = "reset-required" // NVML wants a GPU reset
	FaultRebootNeeded  FaultKind = "reboot-needed"  // the GPU asks for the node's reboot
	FaultXid           FaultKind = "xid"            // a critical Xid, from a driver that does not name a cure
	FaultMemoryUnknown FaultKind = "memory-unknown" // offered, but with a capacity of 0 bytes
	FaultUnresponsive  FaultKind = "unresponsive"   // does not answer in time
	FaultDriverAbsent  FaultKind = "driver-absent"  // the driver was unloaded
	FaultUnreadable    FaultKind = "unreadable"     // any other failed query

	// FaultInstanceUnusable: a GPU instance that was made by others and that no
	// workload can use whole; the rest of the GPU is offered.
	FaultInstanceUnusable FaultKind = "instance-unusable"
	// FaultMIGUnusable: the GPU is in MIG mode, so it is not offered whole, and its
	// partitions can be neither seen nor made.
	FaultMIGUnusable FaultKind = "mig-unusable"

	FaultLinkDown FaultKind = "link-down" // a NIC's port has no link
	// FaultTaken: a NIC is in a network namespace into which no claim brought it.
	FaultTaken FaultKind = "taken"
	// FaultUndeclared: the administrator's file names, or asks for, what is not there.
	FaultUndeclared FaultKind = "undeclared"
)

// GPU returns the GPU with that UUID.
func (m *Machine) GPU(uuid string) (*GPU, bool) {
	i := slices.IndexFunc(m.GPUs, func(g GPU) bool { return g.UUID == uuid })
	if i < 0 {
		return nil, false
	}
	return &m.GPUs[i], true
}
