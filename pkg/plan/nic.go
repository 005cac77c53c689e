package plan

import "github.com/dovetail-dra/dovetail/pkg/machine"

// NICConfig is what class and claim say of a NIC.
type NICConfig struct {
	// InterfaceName, MTU in bytes, addresses with their prefix, and routes of the
	// interface in the Pod.
	InterfaceName string
	MTU           int
	Addresses     []string
	Routes        []machine.Route
	// TrafficClass that RDMA traffic is to have; nil: nobody has said so.
	TrafficClass *int
	// Lossless: the NIC's port must keep that traffic from being lost.
	Lossless bool
	// KeepHost leaves the interface to the host.
	KeepHost bool
	// Topology says whether the workload's NCCL is told where GPUs and NICs sit; nil:
	// where the administrator has said it, since the machine does not.
	Topology *bool
}
