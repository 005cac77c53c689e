package rdma

import (
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// stacked are kinds of interface that take on the hardware address of another.
var stacked = []string{"bond", "bridge", "ipvlan", "ipvtap", "macsec", "macvlan", "macvtap", "team", "vlan", "vrf"}

// find looks among a namespace's links for a function's interface, which may have been
// renamed. Kernels from 5.14 say which function a link is of; otherwise its hardware
// address tells.
func find(links []kernel.Link, function machine.Address, netdev machine.NetdevHome) (kernel.Link, bool) {
	var ofFunction, byAddress []kernel.Link
	for _, l := range links {
		same := netdev.MAC != "" && (l.PermanentMAC == netdev.MAC || l.MAC == netdev.MAC)
		switch {
		case slices.Contains(stacked, l.Kind):
		case l.Parent == function.String() && same:
			return l, true
		case l.Parent == function.String():
			ofFunction = append(ofFunction, l)
		case same && !ofOther(l):
			byAddress = append(byAddress, l)
		}
	}
	for _, found := range [][]kernel.Link{ofFunction, byAddress} {
		if len(found) == 1 {
			return found[0], true
		}
	}
	return kernel.Link{}, false
}

// ofOther says whether a link is known to be of another PCI function.
func ofOther(l kernel.Link) bool {
	_, err := machine.ParseAddress(l.Parent)
	return err == nil
}

// named returns the link of that name.
func named(links []kernel.Link, name string) (kernel.Link, bool) {
	i := slices.IndexFunc(links, func(l kernel.Link) bool { return l.Name == name })
	if i < 0 {
		return kernel.Link{}, false
	}
	return links[i], true
}

// device returns the namespace's RDMA device of that name.
func device(in kernel.Namespace, name string) (kernel.RDMADevice, bool, error) {
	devices, err := in.RDMADevices()
	i := slices.IndexFunc(devices, func(d kernel.RDMADevice) bool { return d.Name == name })
	if err != nil || i < 0 {
		return kernel.RDMADevice{}, false, err
	}
	return devices[i], true, nil
}
