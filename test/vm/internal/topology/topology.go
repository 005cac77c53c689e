// Package topology is the hardware of the virtual machine. It is written for QEMU
// once, and the tests in the guest know from the same values what they are to find.
package topology

import "fmt"

// NIC is one network card.
type NIC struct {
	Name  string // of the interface, which the tests give it
	MAC   string
	Model Model
	// RDMA is the name of the RDMA device that the tests give it; empty: none.
	RDMA string
	at   string // bus and, where it is not 0, function
}

// Model is QEMU's name of a card, which is also the driver's.
type Model string

// Models of cards.
const (
	IGB     Model = "igb"     // Intel's 82576, with seven virtual functions; its link takes two seconds
	VMXNET3 Model = "vmxnet3" // VMware's, whose link is up at once
	E1000E  Model = "e1000e"  // Intel's 82574
)

// GPU is a stand-in: a PCI device without a driver, known by where it is.
type GPU struct {
	Name string
	Slot int // of the port that it hangs on: /sys/bus/pci/slots/SLOT
}

// The cards, by how near they are to GPU0 in the words of "nvidia-smi topo -m".
var (
	Near     = NIC{"near", "52:54:00:00:00:01", IGB, "mlx5_0", "downA1"}         // PIX: one switch
	Below    = NIC{"below", "52:54:00:00:00:02", VMXNET3, "mlx5_1", "downB0"}    // PXB: a switch below the switch
	Beside   = NIC{"beside", "52:54:00:00:00:03", VMXNET3, "mlx5_2", withTwin}   // PHB: another port of the host bridge
	Twin     = NIC{"twin", "52:54:00:00:00:04", VMXNET3, "mlx5_3", twin}         // PHB: the same card's second function
	SameNode = NIC{"same-node", "52:54:00:00:00:05", VMXNET3, "mlx5_4", "rootB"} // NODE: another host bridge
	Far      = NIC{"far", "52:54:00:00:00:06", VMXNET3, "mlx5_5", "downC1"}      // SYS: another NUMA node; PIX to GPU1
	Uplink   = NIC{"uplink", "52:54:00:00:00:07", E1000E, "", "pcie.0"}          // SYS: it has no NUMA node
	NICs     = []NIC{Near, Below, Beside, Twin, SameNode, Far, Uplink}

	// Spare is taken out by a test, and does not come back: others must not count on it.
	Spare = NIC{"spare", "52:54:00:00:00:08", VMXNET3, "mlx5_6", "downC2"}

	GPU0 = GPU{"gpu0", 10}
	GPU1 = GPU{"gpu1", 30}
)

// The two functions of one card.
const (
	withTwin = "rootA1,addr=00.0,multifunction=on"
	twin     = "rootA1,addr=00.1"
)

// nodes of memory and processors: one of each, and as far from each other as the
// sockets of a server.
var nodes = []string{
	"-smp", "2", "-m", "1G",
	"-object", "memory-backend-ram,id=memory0,size=512M",
	"-object", "memory-backend-ram,id=memory1,size=512M",
	"-numa", "node,nodeid=0,cpus=0,memdev=memory0",
	"-numa", "node,nodeid=1,cpus=1,memdev=memory1",
	"-numa", "dist,src=0,dst=1,val=21",
}

// tree of PCI Express, from the host bridges down. Each port has a slot number, by
// which the kernel knows it for hot-plug.
//
//	bridge A, node 0: switch A: GPU0, Near, switch B: Below
//	                  port:     Beside and Twin
//	bridge B, node 0: port:     SameNode
//	bridge C, node 1: switch C: GPU1, Far, Spare
var tree = []string{
	"pxb-pcie,id=bridgeA,bus_nr=32,bus=pcie.0,numa_node=0",
	"pxb-pcie,id=bridgeB,bus_nr=64,bus=pcie.0,numa_node=0",
	"pxb-pcie,id=bridgeC,bus_nr=96,bus=pcie.0,numa_node=1",

	"pcie-root-port,id=rootA0,bus=bridgeA,chassis=1,slot=1,addr=0",
	"x3130-upstream,id=upA,bus=rootA0",
	"xio3130-downstream,id=downA0,bus=upA,chassis=2,slot=10",
	"xio3130-downstream,id=downA1,bus=upA,chassis=3,slot=11",
	"xio3130-downstream,id=downA2,bus=upA,chassis=4,slot=12",
	"x3130-upstream,id=upB,bus=downA2",
	"xio3130-downstream,id=downB0,bus=upB,chassis=5,slot=13",
	"pcie-root-port,id=rootA1,bus=bridgeA,chassis=6,slot=14,addr=1",

	"pcie-root-port,id=rootB,bus=bridgeB,chassis=7,slot=20",

	"pcie-root-port,id=rootC,bus=bridgeC,chassis=8,slot=2",
	"x3130-upstream,id=upC,bus=rootC",
	"xio3130-downstream,id=downC0,bus=upC,chassis=9,slot=30",
	"xio3130-downstream,id=downC1,bus=upC,chassis=10,slot=31",
	"xio3130-downstream,id=downC2,bus=upC,chassis=11,slot=32",

	"pci-testdev,bus=downA0",
	"pci-testdev,bus=downC0",
}

// Arguments are QEMU's for this machine. The cards are on one hub, which makes
// their links come up, and which leads nowhere.
func Arguments() []string {
	args := append([]string{"-M", "q35"}, nodes...)
	// The kernel's own driver of hot-plug, with slots in sysfs, and not ACPI's.
	args = append(args, "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off")
	for _, device := range tree {
		args = append(args, "-device", device)
	}
	for i, n := range append(NICs[:len(NICs):len(NICs)], Spare) {
		args = append(args, "-netdev", fmt.Sprintf("hubport,id=port%d,hubid=0", i),
			"-device", fmt.Sprintf("%s,id=%s,netdev=port%d,mac=%s,bus=%s", n.Model, n.Name, i, n.MAC, n.at)) // the monitor knows it by its name
	}
	return args
}
