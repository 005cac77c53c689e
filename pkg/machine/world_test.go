package machine

import (
	"fmt"
	"testing"
)

// at makes an address from its text.
func at(t testing.TB, text string) Address {
	t.Helper()
	a, err := ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// place is a Location: the root, the NUMA node, and the bridges from the root down.
func place(t testing.TB, root string, numa int, bridges ...string) Location {
	l := Location{PCIeRoot: root, NUMANode: numa}
	for _, b := range bridges {
		l.Bridges = append(l.Bridges, at(t, b))
	}
	return l
}

// world builds machines for the tests.
type world struct {
	testing.TB
	Machine
}

func (w *world) gpu(address string, l Location) *world {
	w.GPUs = append(w.GPUs, GPU{UUID: "GPU-" + address, Address: at(w, address), Location: l})
	return w
}

func (w *world) nic(address string, l Location) *world {
	w.NICs = append(w.NICs, NIC{Address: at(w, address), Location: l, RDMA: &RDMADevice{Name: "mlx5_" + address}})
	return w
}

// behindSwitch is the place of a device that has the given bus, below the switch with
// the given bus.
func (w *world) behindSwitch(numa, upstream, device int) Location {
	return place(w, fmt.Sprintf("pci0000:%02x", upstream-1), numa,
		fmt.Sprintf("0000:%02x:01.0", upstream-1), fmt.Sprintf("0000:%02x:00.0", upstream), fmt.Sprintf("0000:%02x:%02x.0", upstream+1, device%32))
}

// switches adds switches, each with so many GPUs and NICs.
func (w *world) switches(n, gpus, nics int) *world {
	for s := range n {
		upstream := 0x10 * (s + 1)
		for i := range nics {
			w.nic(fmt.Sprintf("0000:%02x:00.0", upstream+2+i), w.behindSwitch(s*2/n, upstream, i))
		}
		for i := range gpus {
			w.gpu(fmt.Sprintf("0000:%02x:00.0", upstream+8+i), w.behindSwitch(s*2/n, upstream, 8+i))
		}
	}
	return w
}

// flat is a VM: two NICs and two GPUs on one root.
func flat(w *world) {
	root := place(w, "pci0000:00", -1)
	w.nic("0000:01:00.0", root).nic("0000:02:00.0", root).gpu("0000:05:00.0", root).gpu("0000:06:00.0", root)
}

// vfs gives the NIC so many.
func (w *world) vfs(nic, n int) *world {
	for i := range n {
		a := w.NICs[nic].Address
		a.Device, a.Function = uint8(1+(i+1)/8), uint8((i+1)%8)
		w.NICs[nic].VFs = append(w.NICs[nic].VFs, VF{Index: i, Address: a, RDMA: &RDMADevice{Name: fmt.Sprintf("mlx5_v%d_%d", nic, i)}})
	}
	w.NICs[nic].MaxVFs = n
	return w
}
