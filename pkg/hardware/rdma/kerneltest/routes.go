package kerneltest

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func (n *namespace) Addresses() ([]kernel.Address, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	var all []kernel.Address
	for index, l := range n.space.links {
		for _, a := range l.addresses {
			all = append(all, kernel.Address{Link: index, Address: a})
		}
		if l.Up && l.Kind != "bridge" {
			all = append(all, kernel.Address{Link: index, Address: "fe80::1/64", Kernel: true})
		}
	}
	return all, nil
}

func (n *namespace) AddAddress(index int, address string) error {
	return n.on("AddAddress", index, func(l *link) error {
		if _, err := netip.ParsePrefix(address); err != nil {
			return unix.EINVAL
		}
		for _, a := range l.addresses {
			if a == address {
				return unix.EEXIST
			}
		}
		l.addresses = append(l.addresses, address)
		return nil
	})
}

// Routes has those to the prefixes of addresses too, as the kernel makes them.
func (n *namespace) Routes() ([]kernel.Route, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	var all []kernel.Route
	for index, l := range n.space.links {
		all = append(all, l.routes...)
		for _, a := range l.addresses {
			if l.Up {
				all = append(all, kernel.Route{Link: index, Kernel: true, Route: machine.Route{To: netip.MustParsePrefix(a).Masked().String()}})
			}
		}
	}
	return all, nil
}

func (n *namespace) AddRoute(index int, route machine.Route) error {
	return n.on("AddRoute", index, func(l *link) error {
		if !l.Up {
			return unix.ENETDOWN
		}
		if route.From != "" && !l.has(route.From) {
			return unix.EINVAL
		}
		l.routes = append(l.routes, kernel.Route{Route: route, Link: index})
		return nil
	})
}

// has says whether the link has an address.
func (l *link) has(address string) bool {
	for _, a := range l.addresses {
		if netip.MustParsePrefix(a).Addr().String() == address {
			return true
		}
	}
	return false
}

// DefaultTables is the main table alone, as on most hosts.
func (n *namespace) DefaultTables() ([]int, error) { return []int{unix.RT_TABLE_MAIN}, nil }
