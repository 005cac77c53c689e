package rdma

import (
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/sysfs"
)

// vendors of cards with RDMA, by PCI's numbers (the PCI ID Repository, pci.ids).
var vendors = map[uint16]string{
	0x14e4: "Broadcom",
	0x15b3: "NVIDIA", // Mellanox, once
	0x1077: "Marvell",
	0x1425: "Chelsio",
	0x1414: "Microsoft",
	0x19e5: "Huawei",
	0x1ae0: "Google",
	0x1af4: "Red Hat", // virtio
	0x1d0f: "Amazon",
	0x1dd8: "AMD", // Pensando
	0x8086: "Intel",
}

func vendor(number uint16) string {
	if name, ok := vendors[number]; ok {
		return name
	}
	return fmt.Sprintf("%04x", number)
}

// model is the RDMA device's word, or PCI's numbers where that is not to be had.
func model(f sysfs.Function) string {
	if f.RDMA != nil && f.RDMA.Model != "" {
		return f.RDMA.Model
	}
	return fmt.Sprintf("%04x:%04x", f.Vendor, f.Device)
}
