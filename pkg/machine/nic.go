package machine

// NIC is one PCI function of a network card: with network interfaces, an RDMA
// device, or both. Virtual functions are not among the machine's NICs but in their
// physical function's VFs.
type NIC struct {
	Address Address `json:"address"`
	// Vendor and Model in people's words where they are known, otherwise PCI's numbers
	// and the RDMA device's own: "NVIDIA", "MT4129".
	Vendor string `json:"vendor,omitempty"`
	Model  string `json:"model,omitempty"`
	// Driver is the kernel's: "mlx5_core". Empty: none is bound.
	Driver          string `json:"driver,omitempty"`
	FirmwareVersion string `json:"firmwareVersion,omitempty"`
	// Netdevs are its network interfaces, in the order of their ports: one, but for
	// old cards with two ports a function, and none for InfiniBand without IPoIB.
	Netdevs []Netdev `json:"netdevs,omitempty"`
	// RDMA is nil where the function has no RDMA device.
	RDMA *RDMADevice `json:"rdma,omitempty"`
	// MaxVFs is how many virtual functions it can have; VFs are those that it has, in
	// their order.
	MaxVFs int  `json:"maxVFs,omitempty"`
	VFs    []VF `json:"vfs,omitempty"`
	// DCB is how the port treats classes of traffic; zero where it does not say.
	DCB      DCB      `json:"dcb,omitzero"`
	Location Location `json:"location"`
	// Withheld says why the NIC is not offered, in words; empty where it is.
	Withheld string `json:"withheld,omitempty"`
	// Away says that its interfaces, or its RDMA device, are in another network
	// namespace: what is told of them is what was last seen.
	Away   bool   `json:"away,omitempty"`
	Health Health `json:"health"`
}

// Netdev is a network interface.
type Netdev struct {
	Name string `json:"name"`
	// MAC is its hardware address as text: "b8:3f:d2:00:00:01".
	MAC string `json:"mac"`
	MTU int    `json:"mtu"` // bytes
	// MaxMTU is the largest that it takes; 0: it does not say.
	MaxMTU int `json:"maxMTU,omitempty"`
	// Up says that the administrator has it up; Carrier that there is a link.
	Up      bool `json:"up"`
	Carrier bool `json:"carrier"`
	// Speed of the link in Mb/s; 0: unknown, as it is without one.
	Speed int `json:"speed,omitempty"`
}

// RDMADevice is what verbs are called on.
type RDMADevice struct {
	Name string `json:"name"` // "mlx5_0"
	// Nodes are its own character devices: "/dev/infiniband/uverbs0", and umad and
	// issm where the kernel has them. Those of connection management are the node's
	// (RDMANodes of the machine).
	Nodes []string   `json:"nodes,omitempty"`
	Ports []RDMAPort `json:"ports,omitempty"`
}

// RDMAPort is one port; Ethernet NICs have one.
type RDMAPort struct {
	Number    int       `json:"number"` // from 1
	LinkLayer LinkLayer `json:"linkLayer"`
	// State is the kernel's word: PortActive, "DOWN", …
	State string `json:"state"`
	Rate  int    `json:"rate,omitempty"` // Gb/s
	// GIDs that are there, in the order of their indices.
	GIDs []GID `json:"gids,omitempty"`
}

// PortActive is the state of a port that works.
const PortActive = "ACTIVE"

// GID is one entry of a port's table.
type GID struct {
	Index int `json:"index"`
	// GID is eight groups of hexadecimal digits, as sysfs has it.
	GID string `json:"gid"`
	// Type is the kernel's word: "IB/RoCE v1" or "RoCE v2".
	Type string `json:"type"`
	// Netdev that it is of; empty for InfiniBand.
	Netdev string `json:"netdev,omitempty"`
}

// LinkLayer of an RDMA port.
type LinkLayer string

// Link layers, as sysfs has them.
const (
	LinkEthernet   LinkLayer = "Ethernet"
	LinkInfiniBand LinkLayer = "InfiniBand"
)

// VF is a virtual function of a NIC.
type VF struct {
	// Index is its number among the NIC's, from 0.
	Index   int         `json:"index"`
	Address Address     `json:"address"`
	Driver  string      `json:"driver,omitempty"`
	Netdevs []Netdev    `json:"netdevs,omitempty"`
	RDMA    *RDMADevice `json:"rdma,omitempty"`
	// Withheld and Away as for a NIC.
	Withheld string `json:"withheld,omitempty"`
	Away     bool   `json:"away,omitempty"`
}

// DCB is the part of a port's data center bridging (IEEE 802.1Q) that makes Ethernet
// lossless for RDMA.
type DCB struct {
	// PFC says of each of the eight priorities whether the port is paused rather than
	// to lose a frame of it.
	PFC [8]bool `json:"pfc"`
	// Trust is what priorities are taken from. Empty: the port does not say.
	Trust Trust `json:"trust,omitempty"`
	// DSCP is the application table's part for that trust: priority by code point.
	DSCP []DSCPPriority `json:"dscp,omitempty"`
	// Bandwidth of each traffic class in percent, and each priority's traffic class
	// (ETS). Nil: the port does not say.
	ETS *ETS `json:"ets,omitempty"`
}

// Trust is what a port takes a frame's priority from.
type Trust string

// Kinds of trust.
const (
	TrustPCP  Trust = "pcp"  // the VLAN tag
	TrustDSCP Trust = "dscp" // the IP header
)

// DSCPPriority maps a code point, 0 to 63, to a priority, 0 to 7.
type DSCPPriority struct {
	DSCP     uint8 `json:"dscp"`
	Priority uint8 `json:"priority"`
}

// ETS is a port's enhanced transmission selection.
type ETS struct {
	// Class of each priority; Bandwidth in percent and Algorithm (linux/dcbnl.h,
	// IEEE_8021QAZ_TSA_*) of each class.
	Class     [8]uint8 `json:"class"`
	Bandwidth [8]uint8 `json:"bandwidth"`
	Algorithm [8]uint8 `json:"algorithm"`
}

// Lossless says whether any priority is.
func (d *DCB) Lossless() bool { return d.PFC != [8]bool{} }

// NICHome is all that a PCI function's interfaces and RDMA device are on the host,
// taken down before they go into a Pod and put back when they return. The function is
// a NIC or a VF.
type NICHome struct {
	Address Address      `json:"address"`
	Netdevs []NetdevHome `json:"netdevs,omitempty"`
	// RDMA is its RDMA device's name, which it keeps everywhere; empty without one.
	RDMA string `json:"rdma,omitempty"`
	// RDMAMoves says that RDMA devices belong to one network namespace (rdma-system(8),
	// "exclusive"), so that this one goes with the interfaces.
	RDMAMoves bool `json:"rdmaMoves,omitempty"`
	// DCB is put back where it is not zero: a move between namespaces empties the
	// application table.
	DCB DCB `json:"dcb,omitzero"`
}

// NetdevHome is an interface as the host has it.
type NetdevHome struct {
	Name string `json:"name"`
	MAC  string `json:"mac"`
	MTU  int    `json:"mtu"`
	Up   bool   `json:"up"`
	// Addresses with their prefix: "10.0.0.1/24"; without those that the kernel makes
	// itself (IPv6 link-local).
	Addresses []string `json:"addresses,omitempty"`
	// Routes through the interface, without those that the kernel makes itself.
	Routes []Route `json:"routes,omitempty"`
}

// Route is one through a known interface.
type Route struct {
	// To is a prefix: "10.1.0.0/16", "0.0.0.0/0".
	To string `json:"to"`
	// Via is the next hop's address; empty: it is on the link.
	Via string `json:"via,omitempty"`
	// From is the preferred source address.
	From   string `json:"from,omitempty"`
	Metric int    `json:"metric,omitempty"`
	// Table is the routing table's number; 0 is the main one.
	Table int `json:"table,omitempty"`
	// Scope and Protocol as in rtnetlink(7).
	Scope    int `json:"scope,omitempty"`
	Protocol int `json:"protocol,omitempty"`
}
