package v1alpha1

// NICSettings are the fields that concern NICs.
type NICSettings struct {
	// InterfaceName of the network interface in the Pod; left out, it has the host's.
	InterfaceName *string `json:"interfaceName,omitempty"`
	// MTU of the interface in the Pod, in bytes; left out, it has the host's.
	MTU *int32 `json:"mtu,omitempty"`
	// Addresses of the interface in the Pod, with their prefix: "10.1.0.7/16". Left
	// out, the host's go with it, and its routes, too, where there are none here.
	Addresses []string `json:"addresses,omitempty"`
	// Routes through the interface in the Pod.
	Routes []Route `json:"routes,omitempty"`

	// TrafficClass that RDMA traffic is to have, 0 to 255: the byte of the IP header
	// with the code point (DSCP) and two bits for congestion. The workload is told.
	TrafficClass *int32 `json:"trafficClass,omitempty"`
	// DSCP is the same by its code point alone, 0 to 63.
	DSCP *int32 `json:"dscp,omitempty"`
	// RequireLossless refuses a NIC whose port does not keep this traffic from being
	// lost: without priority flow control for its priority, or, where no traffic class
	// is said, for any.
	RequireLossless *bool `json:"requireLossless,omitempty"`

	// KeepHostNetwork leaves the interface to the host: the Pod gets the RDMA device
	// alone.
	KeepHostNetwork *bool `json:"keepHostNetwork,omitempty"`

	// NCCLTopology says whether NCCL is told, by a file, where the claim's GPUs and NICs
	// sit. Left out, it is where the administrator has declared pairs, since the machine
	// does not say it.
	NCCLTopology *bool `json:"ncclTopology,omitempty"`
}

// Route is one through a NIC's interface.
type Route struct {
	// To is a prefix: "10.0.0.0/8", or "0.0.0.0/0" for all that has no other.
	To string `json:"to"`
	// Via is the next hop's address; left out, To is on the link.
	Via string `json:"via,omitempty"`
	// From is the source address that is preferred, one of the interface's.
	From string `json:"from,omitempty"`
	// Metric among routes to one prefix: the least wins.
	Metric *int32 `json:"metric,omitempty"`
}
