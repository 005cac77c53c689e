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
