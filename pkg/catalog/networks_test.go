package catalog_test

import (
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// roce is a NIC of 400 Gb/s, lossless on priority 3, at the bus and on its root.
func roce(bus uint8) machine.NIC {
	return machine.NIC{
		Address: machine.Address{Bus: bus}, Vendor: "NVIDIA", Model: "MT4129", Driver: "mlx5_core", FirmwareVersion: "28.39.1002", MaxVFs: 64,
		Netdevs:  []machine.Netdev{{Name: fmt.Sprintf("eth%d", bus), MAC: "b8:3f:d2:00:00:01", MTU: 4200, Up: true, Carrier: true, Speed: 400000}},
		RDMA:     rdma(fmt.Sprintf("mlx5_%d", bus)),
		DCB:      machine.DCB{PFC: [8]bool{3: true, 4: true}, Trust: machine.TrustDSCP},
		Location: root(bus),
	}
}

func rdma(name string) *machine.RDMADevice {
	return &machine.RDMADevice{Name: name, Ports: []machine.RDMAPort{{
		Number: 1, LinkLayer: machine.LinkEthernet, State: machine.PortActive, Rate: 400,
		GIDs: []machine.GID{
			{Index: 0, GID: "fe80:0000:0000:0000:ba3f:d2ff:fe00:0001", Type: "IB/RoCE v1"},
			{Index: 1, GID: "fe80:0000:0000:0000:ba3f:d2ff:fe00:0001", Type: "RoCE v2"},
			{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:0a00:0001", Type: "RoCE v2"},
		},
	}}}
}

// root is one for each 16 buses.
func root(bus uint8) machine.Location {
	return machine.Location{
		PCIeRoot: fmt.Sprintf("pci0000:%x0", bus>>4), Switch: fmt.Sprintf("0000:%x2:00.0", bus>>4), NUMANode: int(bus >> 7),
		Bridges: []machine.Address{{Bus: bus &^ 0xf, Device: 1}, {Bus: bus&^0xf + 2}, {Bus: bus&^0xf + 3, Device: bus & 0xf}},
	}
}

func withVFs(nic machine.NIC, n int) machine.NIC {
	for i := range n {
		a := nic.Address
		a.Device, a.Function = uint8(1+i/8), uint8(i%8)
		nic.VFs = append(nic.VFs, machine.VF{
			Index: i, Address: a, RDMA: rdma(fmt.Sprintf("%s_v%d", nic.RDMA.Name, i)),
			Netdevs: []machine.Netdev{{Name: fmt.Sprintf("%sv%d", nic.Netdevs[0].Name, i), MTU: 9000}},
		})
	}
	return nic
}

func gpuAt(bus uint8) machine.GPU {
	return machine.GPU{
		UUID: fmt.Sprintf("GPU-%02x", bus), Address: machine.Address{Bus: bus}, ProductName: "NVIDIA H100 80GB HBM3",
		Memory: machine.Memory{Total: 80 << 30}, Multiprocessors: 132, Location: root(bus),
	}
}

// networks are machines with NICs of all kinds.
func networks() map[string]machine.Machine {
	infiniband := roce(0x15)
	infiniband.Netdevs, infiniband.DCB = nil, machine.DCB{}
	infiniband.RDMA.Ports[0] = machine.RDMAPort{Number: 1, LinkLayer: machine.LinkInfiniBand, State: machine.PortActive, Rate: 400}
	down := roce(0x15)
	down.Netdevs[0].Speed, down.RDMA.Ports = 0, nil
	down.Health = machine.Health{Reason: machine.FaultLinkDown, Message: "no link"}
	uplink := roce(0x25)
	uplink.Withheld = "it has the default route"
	some := withVFs(roce(0x15), 40)
	some.VFs[1].Withheld, some.VFs[33].Withheld = "vfio-pci has it", "vfio-pci has it"
	inMIGMode := gpuAt(0x29)
	inMIGMode.MIG.Enabled = true
	return map[string]machine.Machine{
		"pairs":       {GPUs: []machine.GPU{gpuAt(0x18), gpuAt(0x28)}, NICs: []machine.NIC{roce(0x15), roce(0x25)}},
		"shared":      {GPUs: []machine.GPU{gpuAt(0x18), gpuAt(0x19), gpuAt(0x28), inMIGMode}, NICs: []machine.NIC{roce(0x15), roce(0x25), roce(0xe5)}},
		"VFs":         {GPUs: []machine.GPU{gpuAt(0x18), gpuAt(0x19)}, NICs: []machine.NIC{some, roce(0x25)}},
		"many VFs":    {GPUs: []machine.GPU{gpuAt(0x18)}, NICs: []machine.NIC{withVFs(roce(0x15), 127)}},
		"NICs only":   {NICs: []machine.NIC{infiniband, uplink}},
		"link down":   {GPUs: []machine.GPU{gpuAt(0x18)}, NICs: []machine.NIC{down}},
		"uplink only": {GPUs: []machine.GPU{gpuAt(0x18)}, NICs: []machine.NIC{uplink}},
	}
}
