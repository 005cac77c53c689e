package nccl

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Device is a GPU or NIC of a claim.
type Device struct {
	Address  machine.Address
	Class    Class
	Location machine.Location
	// Beside is a device that the administrator has declared to be next to it; nil:
	// where it sits is for Location to say.
	Beside *machine.Address
}

// Class is the PCI class, by which NCCL tells devices apart.
type Class string

// Classes, as sysfs has them (PCI-SIG, "PCI Code and ID Assignment").
const (
	ClassGPU        Class = "0x030200"
	ClassEthernet   Class = "0x020000"
	ClassInfiniBand Class = "0x020700"
	classSwitch     Class = "0x060400"
)

// Topology is the content of a file for NCCL_TOPO_FILE: a tree of what is declared, and
// of switches as the machine has them. NCCL adds what it finds itself: what a CPU is, how
// fast the links are, and the GPUs' NVLinks.
//
//	<system version="1">
//	  <cpu numaid="0">
//	    <pci busid="ffff:ff:00.0" class="0x060400" link_speed="32 GT/s" link_width="16">
//	      <pci busid="0000:1a:00.0" class="0x020000"/>
//	      <pci busid="0000:1b:00.0" class="0x030200"/>
func Topology(devices []Device) []byte {
	devices = slices.SortedFunc(slices.Values(devices), func(a, b Device) int { return a.Address.Compare(b.Address) })
	devices = slices.CompactFunc(devices, func(a, b Device) bool { return a.Address == b.Address && sameAddress(a.Beside, b.Beside) })
	root := &node{}
	for i, group := range groups(devices) {
		place := group[0].Location
		for _, d := range group { // the first that is known
			if place.NUMANode < 0 {
				place.NUMANode = d.Location.NUMANode
			}
		}
		cpu := root.child(fmt.Sprintf(`cpu numaid="%d"`, place.NUMANode))
		for _, d := range group {
			at := cpu
			if declared(group) {
				at = cpu.child(pci(fmt.Sprintf("ffff:ff:%02x.0", i), classSwitch)) // one that no machine has
			} else {
				for _, port := range upstreamPorts(d.Location) {
					at = at.child(pci(port.String(), classSwitch))
				}
			}
			at.child(pci(d.Address.String(), d.Class))
		}
	}
	var out bytes.Buffer
	out.WriteString("<system version=\"1\">\n")
	root.write(&out, "  ")
	out.WriteString("</system>\n")
	return out.Bytes()
}

// pci is an element without its end. What a device's link carries NCCL finds in sysfs;
// of a switch that is only said here it could not, and takes this for no bottleneck.
func pci(address string, class Class) string {
	element := fmt.Sprintf(`pci busid="%s" class="%s"`, address, class)
	if strings.HasPrefix(address, "ffff:ff:") {
		element += ` link_speed="32 GT/s" link_width="16"`
	}
	return element
}

func sameAddress(a, b *machine.Address) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// declared says whether a group is one by declaration.
func declared(group []Device) bool {
	return slices.ContainsFunc(group, func(d Device) bool { return d.Beside != nil })
}

// groups are devices that are next to each other by declaration, over any number of
// others, in the order of their first addresses. Each other device is a group of its own.
func groups(devices []Device) [][]Device {
	of := map[machine.Address]machine.Address{} // each device's group
	var find func(a machine.Address) machine.Address
	find = func(a machine.Address) machine.Address {
		if up, known := of[a]; known && up != a {
			return find(up)
		}
		return a
	}
	for _, d := range devices {
		if d.Beside != nil {
			a, b := find(d.Address), find(*d.Beside)
			if a.Compare(b) > 0 {
				a, b = b, a
			}
			of[b] = a
		}
	}
	members := map[machine.Address][]Device{}
	for _, d := range devices {
		group := find(d.Address)
		if !slices.ContainsFunc(members[group], func(m Device) bool { return m.Address == d.Address }) {
			members[group] = append(members[group], d)
		}
	}
	var all [][]Device
	for _, group := range members {
		all = append(all, group)
	}
	slices.SortFunc(all, func(a, b []Device) int { return a[0].Address.Compare(b[0].Address) })
	return all
}

// upstreamPorts are those of the switches above a device: after the root port, each
// switch has two ports.
func upstreamPorts(l machine.Location) []machine.Address {
	var ports []machine.Address
	for i := 1; i+1 < len(l.Bridges); i += 2 {
		ports = append(ports, l.Bridges[i])
	}
	return ports
}

// node is an element of the file.
type node struct {
	element  string // with its attributes
	children []*node
}

// child returns the one with that element, which is made where there is none.
func (n *node) child(element string) *node {
	for _, c := range n.children {
		if c.element == element {
			return c
		}
	}
	c := &node{element: element}
	n.children = append(n.children, c)
	return c
}

func (n *node) write(out *bytes.Buffer, indent string) {
	slices.SortFunc(n.children, func(a, b *node) int { return cmp.Compare(a.element, b.element) })
	for _, c := range n.children {
		if len(c.children) == 0 {
			fmt.Fprintf(out, "%s<%s/>\n", indent, c.element)
			continue
		}
		name, _, _ := strings.Cut(c.element, " ")
		fmt.Fprintf(out, "%s<%s>\n", indent, c.element)
		c.write(out, indent+"  ")
		fmt.Fprintf(out, "%s</%s>\n", indent, name)
	}
}
