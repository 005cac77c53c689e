package machine

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
	// Promiscuous and AllMulticast, as an administrator has set them, and whether an XDP
	// program is attached.
	Promiscuous  bool `json:"promiscuous,omitempty"`
	AllMulticast bool `json:"allMulticast,omitempty"`
	XDP          bool `json:"xdp,omitempty"`
	// Sysctls that say what becomes of its packets and are not 0, by their names below net
	// without the interface's: "ipv4/conf/rp_filter". Nil: not taken down.
	Sysctls map[string]int `json:"sysctls,omitzero"`
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
