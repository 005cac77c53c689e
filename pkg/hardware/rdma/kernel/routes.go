package kernel

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Addresses implements Namespace.
func (n *namespace) Addresses() ([]Address, error) {
	found, err := again(func() ([]netlink.Addr, error) { return n.route.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("listing addresses: %w", err)
	}
	addresses := make([]Address, 0, len(found))
	for _, a := range found {
		addresses = append(addresses, Address{Link: a.LinkIndex, Address: a.IPNet.String(), Kernel: ofKernel(a)})
	}
	return addresses, nil
}

// ofKernel says whether the kernel makes an address by itself: IPv6's link-local ones, and
// those that routers announce, which are not permanent.
func ofKernel(a netlink.Addr) bool {
	if a.IP.To4() != nil {
		return false
	}
	return a.IP.IsLinkLocalUnicast() || a.Flags&unix.IFA_F_PERMANENT == 0
}

// AddAddress implements Namespace. No duplicate is looked for (IFA_F_NODAD): until that
// ends an IPv6 address could not be a route's source.
func (n *namespace) AddAddress(index int, address string) error {
	ip, prefix, err := net.ParseCIDR(address)
	if err != nil {
		return fmt.Errorf("%w: %w", err, unix.EINVAL)
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: prefix.Mask}}
	if ip.To4() == nil {
		a.Flags = unix.IFA_F_NODAD
	}
	return n.route.AddrAdd(byIndex(index), a)
}

// byIndex is a link of which only that is known.
func byIndex(index int) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

// Routes implements Namespace.
func (n *namespace) Routes() ([]Route, error) {
	found, err := again(func() ([]netlink.Route, error) {
		return n.route.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("listing routes: %w", err)
	}
	var routes []Route
	for i := range found {
		if r := &found[i]; r.Type == unix.RTN_UNICAST && r.Table != unix.RT_TABLE_LOCAL {
			routes = append(routes, split(r)...)
		}
	}
	return routes, nil
}

// split makes a route of each next hop.
func split(r *netlink.Route) []Route {
	if len(r.MultiPath) == 0 {
		return []Route{convert(r, r.LinkIndex, r.Gw, r.Via)}
	}
	routes := make([]Route, 0, len(r.MultiPath))
	for _, hop := range r.MultiPath {
		route := convert(r, hop.LinkIndex, hop.Gw, hop.Via)
		route.Shared = true
		routes = append(routes, route)
	}
	return routes
}

func convert(r *netlink.Route, link int, gateway net.IP, other netlink.Destination) Route {
	route := Route{Link: link, Kernel: r.Protocol == unix.RTPROT_KERNEL || r.Protocol == unix.RTPROT_RA}
	route.Route = machine.Route{To: "0.0.0.0/0", Metric: r.Priority, Table: r.Table, Scope: int(r.Scope), Protocol: int(r.Protocol)}
	if r.Family == netlink.FAMILY_V6 {
		route.To = "::/0"
	}
	if r.Dst != nil {
		route.To = r.Dst.String()
	}
	if route.Table == unix.RT_TABLE_MAIN {
		route.Table = 0
	}
	if via, ok := other.(*netlink.Via); ok {
		gateway = via.Addr
	}
	if gateway != nil {
		route.Via = gateway.String()
	}
	if r.Src != nil {
		route.From = r.Src.String()
	}
	return route
}

// DefaultTables implements Namespace.
func (n *namespace) DefaultTables() ([]int, error) {
	rules, err := again(func() ([]netlink.Rule, error) { return n.route.RuleList(netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("listing routing rules: %w", err)
	}
	var tables []int
	for i := range rules {
		if r := &rules[i]; r.Invert || !selects(r) {
			tables = append(tables, r.Table)
		}
	}
	return tables, nil
}

// selects says whether a rule is only for some packets.
func selects(r *netlink.Rule) bool {
	return r.Src != nil || r.Dst != nil || r.IifName != "" || r.OifName != "" || r.Mark != 0 ||
		r.Tos != 0 || r.TunID != 0 || r.IPProto != 0 || r.Sport != nil || r.Dport != nil || r.UIDRange != nil
}
