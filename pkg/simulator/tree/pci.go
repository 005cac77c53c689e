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
	classEthernet     = "0x020000"
	classInfiniBand   = "0x020700"
)

// pci renders the PCI tree: the devices' directories below sys/devices, and the
// links to them in sys/bus/pci.
func (w *writer) pci(state *simulator.State) {
	bus := &bus{writer: w, roots: map[string]bool{}, links: map[string]bool{}}
	for i := range state.GPUs {
		bus.gpu(state, state.GPU(i))
	}
	for i := range state.NICs {
		bus.nic(state.NIC(i))
	}
	w.removeMatching("sys/bus/pci/devices/*", bus.links)
	w.removeMatching("sys/bus/pci/drivers/*/*:*", bus.links)
	w.removeMatching("sys/bus/pci/drivers/*", bus.links)
	w.removeMatching("sys/devices/pci*", bus.roots)
}

// bus collects what there is of the PCI bus: roots, and links to devices and drivers.
type bus struct {
	*writer
	roots, links map[string]bool
}

func (b *bus) gpu(state *simulator.State, g simulator.GPU) {
	dir := path.Join(b.ports(g.Spec.Above, g.Spec.NUMANode), g.Spec.Address.String())
	b.device(dir, g.Spec.NUMANode, map[string]string{
		"class":            class3DController,
		"vendor":           hex(g.Model.PCIDevice & 0xffff),
		"device":           hex(g.Model.PCIDevice >> 16),
		"subsystem_vendor": hex(g.Model.PCISubsystem & 0xffff),
		"subsystem_device": hex(g.Model.PCISubsystem >> 16),
		"revision":         "0xa1",
	})
	driver := ""
	if state.Driver == simulator.DriverLoaded {
		driver = "nvidia"
	}
	b.driver(dir, driver)
}

func (b *bus) nic(n simulator.NIC) {
	above := b.ports(n.Spec.Above, n.Spec.NUMANode)
	for i := range n.Spec.MaxVFs {
		if n.Unplugged || i >= len(n.VFs) {
			address := simulator.VFAddress(n.Spec.Address, i).String()
			b.remove(path.Join(above, address))
			b.remove(path.Join(above, n.Spec.Address.String(), fmt.Sprintf("virtfn%d", i)))
		}
	}
	if n.Unplugged {
		b.remove(path.Join(above, n.Spec.Address.String()))
	}
	for _, f := range n.Functions() {
		dir := path.Join(above, f.Address.String())
		values := map[string]string{
			"class": classEthernet, "vendor": hex(n.Model.PCIVendor), "device": hex(n.Model.PCIDevice),
			"subsystem_vendor": hex(n.Model.PCIVendor), "subsystem_device": "0x0001", "revision": "0x00",
		}
		if n.InfiniBand() {
			values["class"] = classInfiniBand
		}
		switch {
		case f.VF >= 0:
			values["device"] = hex(n.Model.VFDevice)
			b.link(path.Join(dir, "physfn"), "../"+n.Spec.Address.String())
			b.link(path.Join(above, n.Spec.Address.String(), fmt.Sprintf("virtfn%d", f.VF)), "../"+f.Address.String())
		case n.Spec.MaxVFs > 0:
			values["sriov_totalvfs"], values["sriov_numvfs"] = fmt.Sprint(n.Spec.MaxVFs), fmt.Sprint(len(n.VFs))
		}
		b.device(dir, n.Spec.NUMANode, values)
		b.driver(dir, n.Spec.Driver)
	}
}

// ports renders the bridges above a device and returns the directory of the last.
func (b *bus) ports(above []string, numaNode int) string {
	dir := path.Join("sys/devices", above[0])
	b.roots[dir] = true
	for _, port := range above[1:] {
		dir = path.Join(dir, port)
		b.device(dir, numaNode, map[string]string{"class": classBridge, "vendor": "0x1000", "device": "0xc030"})
	}
	return dir
}

// device makes one device and its link in sys/bus/pci.
func (b *bus) device(dir string, numaNode int, values map[string]string) {
	values["numa_node"] = fmt.Sprint(numaNode)
	b.values(dir, values)
	b.link(path.Join(dir, "subsystem"), up(dir)+"bus/pci")
	link := "sys/bus/pci/devices/" + path.Base(dir)
	b.link(link, "../../../"+strings.TrimPrefix(dir, "sys/"))
	b.links[link] = true
}

// driver binds one to a device; the empty one is none.
func (b *bus) driver(dir, name string) {
	if name == "" {
		b.remove(path.Join(dir, "driver"))
		return
	}
	driver := "sys/bus/pci/drivers/" + name
	link := path.Join(driver, path.Base(dir))
	b.link(path.Join(dir, "driver"), up(dir)+"bus/pci/drivers/"+name)
	b.link(link, "../../../../"+strings.TrimPrefix(dir, "sys/"))
	b.links[driver], b.links[link] = true, true
}

// up leads from a link in dir back to sys.
func up(dir string) string { return strings.Repeat("../", strings.Count(dir, "/")) }

func hex(id uint32) string { return fmt.Sprintf("0x%04x", id) }
