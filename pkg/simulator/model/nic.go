package model

import (
	"fmt"
	"slices"
	"strings"
)

// NIC is what all network cards of one model have in common, port by port: a card with
// two ports has two PCI functions, each a NIC of its own.
type NIC struct {
	// Name is how machine descriptions name it: "connectx-7".
	Name string
	// Vendor in people's words.
	Vendor string
	// PCIVendor, PCIDevice and VFDevice are PCI's numbers; VFDevice is its virtual
	// functions'.
	PCIVendor, PCIDevice, VFDevice uint32
	// Driver is the kernel's for it.
	Driver string
	// RDMA is nil for a card that has Ethernet alone.
	RDMA *RDMA
	// Ports of one PCI function: one, but for cards of old.
	Ports int
	// Speed of a port in Gb/s.
	Speed int
	// MaxMTU of an interface, in bytes.
	MaxMTU int
	// DCB says whether the driver speaks data center bridging.
	DCB bool
}

// RDMA is what the model's RDMA device says of itself (sys/class/infiniband).
type RDMA struct {
	// Prefix of the device's name, to which the kernel adds a number: "mlx5_".
	Prefix string
	// Type is its hca_type, and VFType a virtual function's: "MT4129". Empty, as is
	// Board, where the driver has no such file.
	Type, VFType string
	Board        string
	Firmware     string
	// InfiniBand says whether ports can be InfiniBand instead of Ethernet.
	InfiniBand bool
	// MAD says whether there are umad devices.
	MAD bool
}

// TypeOf is Type or VFType.
func (r *RDMA) TypeOf(vf bool) string {
	if vf {
		return r.VFType
	}
	return r.Type
}

// nics are from the PCI ID repository, the kernel's drivers and vendors' data sheets;
// firmware and boards are examples.
var nics = []NIC{
	mellanox("connectx-3", 0x1003, 0x1004, 2, 40, "MT4099", "MT4100", "MT_1090120019", "2.42.5000"),
	mellanox("connectx-6", 0x101b, 0x101c, 1, 200, "MT4123", "MT4124", "MT_0000000223", "20.39.3004"),
	mellanox("connectx-7", 0x1021, 0x101e, 1, 400, "MT4129", "MT4126", "MT_0000000838", "28.39.3004"),
	mellanox("connectx-8", 0x1023, 0x101e, 1, 800, "MT4131", "MT4126", "MT_0000001222", "40.45.1200"),
	{
		Name: "bcm57608", Vendor: "Broadcom", PCIVendor: 0x14e4, PCIDevice: 0x1760, VFDevice: 0x1819,
		Driver: "bnxt_en", Ports: 1, Speed: 400, MaxMTU: 9500, DCB: true,
		RDMA: &RDMA{Prefix: "bnxt_re", Type: "BCM57608", VFType: "BCM57608", Firmware: "230.0.157.0"},
	},
	{
		Name: "e810", Vendor: "Intel", PCIVendor: 0x8086, PCIDevice: 0x1592, VFDevice: 0x1889,
		Driver: "ice", Ports: 1, Speed: 100, MaxMTU: 9702, DCB: true,
		RDMA: &RDMA{Prefix: "irdma", Firmware: "1.72"},
	},
	{
		Name: "x550", Vendor: "Intel", PCIVendor: 0x8086, PCIDevice: 0x1563, VFDevice: 0x1565,
		Driver: "ixgbe", Ports: 1, Speed: 10, MaxMTU: 9710, DCB: true,
	},
	{
		Name: "virtio-net", Vendor: "Red Hat", PCIVendor: 0x1af4, PCIDevice: 0x1041,
		Driver: "virtio-pci", Ports: 1, Speed: 0, MaxMTU: 65535,
	},
}

// mellanox is one of NVIDIA's family.
func mellanox(name string, device, vf uint32, ports, speed int, hca, vfHCA, board, firmware string) NIC {
	n := NIC{
		Name: name, Vendor: "NVIDIA", PCIVendor: 0x15b3, PCIDevice: device, VFDevice: vf,
		Driver: "mlx5_core", Ports: ports, Speed: speed, MaxMTU: 9978, DCB: true,
		RDMA: &RDMA{Prefix: "mlx5_", Type: hca, VFType: vfHCA, Board: board, Firmware: firmware, InfiniBand: true, MAD: true},
	}
	if ports > 1 {
		n.Driver, n.RDMA.Prefix = "mlx4_core", "mlx4_"
	}
	return n
}

// LookupNIC returns the network card's model of that name.
func LookupNIC(name string) (*NIC, error) {
	for i := range nics {
		if nics[i].Name == name {
			return &nics[i], nil
		}
	}
	return nil, fmt.Errorf("NIC model %q is unknown: use one of %s", name, strings.Join(NICNames(), ", "))
}

// NICNames are the network cards' models, in alphabetical order.
func NICNames() []string {
	names := make([]string, len(nics))
	for i, n := range nics {
		names[i] = n.Name
	}
	slices.Sort(names)
	return names
}
