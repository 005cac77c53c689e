package simulator

import (
	"crypto/sha256"
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// NICSpec is one network card's PCI function as it is built in.
type NICSpec struct {
	Address machine.Address `json:"address"`
	// Above and NUMANode as for a GPU.
	Above    []string `json:"above"`
	NUMANode int      `json:"numaNode"`
	// Model is a name of model.NICNames.
	Model string `json:"model"`
	// Driver that the kernel has bound to it: the model's own, another such as
	// "vfio-pci", or none where it is empty. Only with the model's own it has
	// interfaces and an RDMA device.
	Driver  string       `json:"driver,omitempty"`
	Netdevs []NetdevSpec `json:"netdevs,omitempty"`
	// RDMA is its RDMA device's name; empty: it has none.
	RDMA string `json:"rdma,omitempty"`
	// LinkLayer of its RDMA device's ports; Speed of each in Gb/s, 0: unknown.
	LinkLayer machine.LinkLayer `json:"linkLayer,omitempty"`
	Speed     int               `json:"speed,omitempty"`
	DCB       machine.DCB       `json:"dcb,omitzero"`
	// MaxVFs is how many virtual functions it can have, NumVFs how many the
	// administrator makes at boot.
	MaxVFs int `json:"maxVFs,omitempty"`
	NumVFs int `json:"numVFs,omitempty"`
	// Uplink says that the node's default route goes through it.
	Uplink bool `json:"uplink,omitempty"`
	// Bond is the name of the bond that its interfaces are in; empty: none.
	Bond string `json:"bond,omitempty"`
}

// NetdevSpec is a network interface as it is after boot.
type NetdevSpec struct {
	Name string `json:"name"`
	MAC  string `json:"mac"`
	MTU  int    `json:"mtu"` // bytes
	// Down says that nobody has brought it up.
	Down bool `json:"down,omitempty"`
	// Addresses with their prefix, and routes through it.
	Addresses []string        `json:"addresses,omitempty"`
	Routes    []machine.Route `json:"routes,omitempty"`
}

// MAC is the hardware address that a function's n-th interface has unless its
// description gives one: the same machine name, address and number always give the
// same. It is a locally administered one.
func MAC(machineName string, function machine.Address, n int) string {
	b := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", machineName, function, n))
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4])
}

// VFAddress is the address of a NIC's virtual function, which follows its own (PCI
// Express, "Single Root I/O Virtualization": first VF offset 1, VF stride 1).
func VFAddress(nic machine.Address, vf int) machine.Address {
	id := int(nic.Bus)<<8 | int(nic.Device)<<3 | int(nic.Function)
	id += 1 + vf
	return machine.Address{Domain: nic.Domain, Bus: uint8(id >> 8), Device: uint8(id >> 3 & 0x1f), Function: uint8(id & 7)}
}

// FreeName is prefix and the lowest number that make a name nobody has.
func FreeName(prefix string, taken func(name string) bool) string {
	for n := 0; ; n++ {
		if name := prefix + fmt.Sprint(n); !taken(name) {
			return name
		}
	}
}
