package simulator

import (
	"fmt"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Describe is the NIC as a driver should come to see it.
func (n NIC) Describe() machine.NIC {
	own := n.Functions()[0]
	d := machine.NIC{
		Address: n.Spec.Address, Vendor: n.Model.Vendor, Model: fmt.Sprintf("%04x:%04x", n.Model.PCIVendor, n.Model.PCIDevice), Driver: n.Spec.Driver,
		Netdevs: own.netdevs(), RDMA: own.rdma(), MaxVFs: n.Spec.MaxVFs, Location: location(n.Spec.Above, n.Spec.NUMANode),
		Withheld: n.withheld(), Away: own.away(),
	}
	if own.RDMAVisible() {
		d.FirmwareVersion = n.Model.RDMA.Firmware
		if n.Model.RDMA.Type != "" {
			d.Model = n.Model.RDMA.Type
		}
	}
	if !d.Away {
		d.DCB, d.Health = n.DCB, n.health(own)
	}
	for _, f := range n.Functions()[1:] {
		d.VFs = append(d.VFs, machine.VF{Index: f.VF, Address: f.Address, Driver: n.Spec.Driver, Netdevs: f.netdevs(), RDMA: f.rdma(), Away: f.away()})
	}
	return d
}

// withheld says why a NIC must not be given away.
func (n NIC) withheld() string {
	switch spec := n.Spec; {
	case spec.Driver == "":
		return "no driver is bound to it: load the card's driver"
	case spec.Driver != n.Model.Driver:
		return spec.Driver + " is bound to it: bind the card's own driver to have it offered"
	case spec.Uplink:
		return "the default route goes through " + spec.Netdevs[0].Name + ": it connects the node, and stays with it"
	case spec.Bond != "":
		return spec.Netdevs[0].Name + " is part of " + spec.Bond + ": take it out of there to have it offered"
	case spec.RDMA == "":
		return "Ethernet only: it has no RDMA device"
	}
	return ""
}

// health: a port that somebody has brought up should have a link.
func (n NIC) health(f Function) machine.Health {
	if !n.NoLink || n.Spec.Driver != n.Model.Driver {
		return machine.Health{}
	}
	for _, d := range f.Netdevs {
		if !d.Up {
			return machine.Health{}
		}
	}
	return machine.Health{Reason: machine.FaultLinkDown, Message: "its port has no link: look at the cable and at the switch"}
}

// away says whether a part of it is in another network namespace.
func (f Function) away() bool {
	for _, d := range f.Netdevs {
		if d.Namespace != "" {
			return true
		}
	}
	return f.RDMANamespace != ""
}

// Carrier says whether an interface has a link.
func (f Function) Carrier(d NetdevState) bool { return d.Up && !f.NIC.NoLink }

// netdevs are those on the host.
func (f Function) netdevs() []machine.Netdev {
	var all []machine.Netdev
	for _, d := range f.Netdevs {
		if d.Namespace != "" {
			continue
		}
		netdev := machine.Netdev{Name: d.Name, MAC: d.MAC, MTU: d.MTU, MaxMTU: f.NIC.Model.MaxMTU, Up: d.Up, Carrier: f.Carrier(d)}
		if netdev.Carrier {
			netdev.Speed = f.NIC.Spec.Speed * 1000
		}
		all = append(all, netdev)
	}
	return all
}

// RDMAVisible says whether the host sees the function's RDMA device.
func (f Function) RDMAVisible() bool { return f.RDMA != "" && f.RDMANamespace == "" }

// Nodes are the character devices of the function's RDMA device, whether the host sees
// it or not, by their names in /dev/infiniband.
func (f Function) Nodes() []string {
	if f.RDMA == "" {
		return nil
	}
	nodes := []string{fmt.Sprintf("uverbs%d", f.Verbs)}
	if f.NIC.InfiniBand() {
		for _, n := range f.MADs {
			nodes = append(nodes, fmt.Sprintf("issm%d", n))
		}
	}
	for _, n := range f.MADs {
		nodes = append(nodes, fmt.Sprintf("umad%d", n))
	}
	return nodes
}

// rdma is what the host sees of an RDMA device: of one that is away, its character
// devices alone.
func (f Function) rdma() *machine.RDMADevice {
	if f.RDMA == "" {
		return nil
	}
	d := &machine.RDMADevice{Name: f.RDMA}
	if f.RDMAVisible() {
		d.Ports = f.Ports()
	}
	for _, node := range f.Nodes() {
		d.Nodes = append(d.Nodes, "/dev/infiniband/"+node)
	}
	return d
}

// Location is the GPU's place in the PCI tree, which its driver does not tell.
func (g GPU) Location() machine.Location { return location(g.Spec.Above, g.Spec.NUMANode) }

// location is what a device's place in the PCI tree makes it.
func location(above []string, numaNode int) machine.Location {
	l := machine.Location{PCIeRoot: above[0], NUMANode: numaNode}
	for _, port := range above[1:] {
		address, err := machine.ParseAddress(port)
		if err != nil {
			panic("simulator: unchecked state: " + err.Error()) // pkg/simulator/description has seen it
		}
		l.Bridges = append(l.Bridges, address)
	}
	if n := len(l.Bridges); n >= 3 {
		l.Switch = strings.ToLower(l.Bridges[n-2].String())
	}
	return l
}
