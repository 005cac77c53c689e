package tree

import (
	"fmt"
	"path"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// PCI class codes (PCI Code and ID Assignment Specification).
const (
	classBridge       = "0x060400"
	class3DController = "0x030200"
)

// pci renders the PCI tree: the devices' directories below sys/devices, and the
// links to them in sys/bus/pci.
func (w *writer) pci(state *simulator.State) {
	keep := map[string]bool{}
	roots := map[string]bool{}
	for i := range state.GPUs {
		g := state.GPU(i)
		dir := path.Join("sys/devices", g.Spec.Above[0])
		roots[dir] = true
		for _, port := range g.Spec.Above[1:] {
			dir = path.Join(dir, port)
			keep[w.pciDevice(dir, g.Spec.NUMANode, map[string]string{
				"class": classBridge, "vendor": "0x1000", "device": "0xc030",
			})] = true
		}
		dir = path.Join(dir, g.Spec.Address.String())
		keep[w.pciDevice(dir, g.Spec.NUMANode, map[string]string{
			"class":            class3DController,
			"vendor":           hex(g.Model.PCIDevice & 0xffff),
			"device":           hex(g.Model.PCIDevice >> 16),
			"subsystem_vendor": hex(g.Model.PCISubsystem & 0xffff),
			"subsystem_device": hex(g.Model.PCISubsystem >> 16),
			"revision":         "0xa1",
		})] = true
		if state.Driver == simulator.DriverLoaded {
			w.link(path.Join(dir, "driver"), up(dir)+"bus/pci/drivers/nvidia")
			w.link("sys/bus/pci/drivers/nvidia/"+g.Spec.Address.String(), "../../../../"+strings.TrimPrefix(dir, "sys/"))
		} else {
			w.remove(path.Join(dir, "driver"))
		}
	}
	if state.Driver != simulator.DriverLoaded {
		w.remove("sys/bus/pci/drivers/nvidia")
	}
	w.removeMatching("sys/bus/pci/devices/*", keep)
	w.removeMatching("sys/devices/pci*", roots)
}

// pciDevice makes one device and returns the name of its link in sys/bus/pci.
func (w *writer) pciDevice(dir string, numaNode int, values map[string]string) string {
	values["numa_node"] = fmt.Sprint(numaNode)
	w.values(dir, values)
	w.link(path.Join(dir, "subsystem"), up(dir)+"bus/pci")
	link := "sys/bus/pci/devices/" + path.Base(dir)
	w.link(link, "../../../"+strings.TrimPrefix(dir, "sys/"))
	return link
}

// up leads from a link in dir back to sys.
func up(dir string) string { return strings.Repeat("../", strings.Count(dir, "/")) }

func hex(id uint32) string { return fmt.Sprintf("0x%04x", id) }
