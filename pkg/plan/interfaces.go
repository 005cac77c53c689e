package plan

import (
	"cmp"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// names are those of the interfaces in the Pod.
func (n *NIC) names(d machine.Device) []string {
	if n.Interface == nil {
		return nil
	}
	var names []string
	for i, netdev := range d.Netdevs() {
		name := netdev.Name
		if i == 0 {
			name = cmp.Or(n.Interface.Name, name)
		}
		names = append(names, name)
	}
	return names
}

// meet refuses two interfaces of one Pod that cannot be there together.
func (p *Plan) meet(r Result, d machine.Device, n *NIC) error {
	if p.interfaces == nil {
		p.interfaces = map[string]string{}
	}
	for _, name := range n.names(d) {
		if other, taken := p.interfaces[name]; taken {
			return failure.New(failure.Invalid,
				"interfaceName: %s for request %s, and for request %s, too, but a Pod's interfaces have different names: name one of them otherwise, or leave it out where a request is for several devices",
				name, other, r.Request)
		}
		p.interfaces[name] = r.Request
	}
	if n.Interface == nil {
		return nil
	}
	for _, prefix := range n.Interface.Addresses {
		address, _, _ := strings.Cut(prefix, "/")
		if other, taken := p.interfaces[address]; taken {
			return failure.New(failure.Invalid,
				"addresses: %s for request %s, and for request %s, too: give each NIC its own, and each its own request", prefix, other, r.Request)
		}
		p.interfaces[address] = r.Request
	}
	return nil
}
