package kernel

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// AddRoute implements Namespace. A next hop that no other route leads to is taken to be
// on the link.
func (n *namespace) AddRoute(index int, route machine.Route) error {
	r, err := build(index, route)
	if err != nil {
		return err
	}
	err = n.addRoute(r)
	if route.Via != "" && (errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EINVAL)) {
		r.Flags |= unix.RTNH_F_ONLINK
		err = n.addRoute(r)
	}
	return err
}

// addRoute adds one, also where there is one to the same prefix by another way.
func (n *namespace) addRoute(r *netlink.Route) error {
	err := n.route.RouteAdd(r)
	if errors.Is(err, unix.EEXIST) {
		err = n.route.RouteAppend(r)
	}
	return err
}

func build(index int, route machine.Route) (*netlink.Route, error) {
	_, to, err := net.ParseCIDR(route.To)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, unix.EINVAL)
	}
	r := &netlink.Route{
		LinkIndex: index, Dst: to, Priority: route.Metric, Table: route.Table,
		Scope: netlink.Scope(route.Scope), Protocol: netlink.RouteProtocol(route.Protocol),
	}
	four := to.IP.To4() != nil
	if via := net.ParseIP(route.Via); via != nil && (via.To4() != nil) == four {
		r.Gw = via
	} else if via != nil {
		r.Via = &netlink.Via{AddrFamily: unix.AF_INET6, Addr: via}
	} else if route.Via != "" {
		return nil, fmt.Errorf("next hop %q is no address: %w", route.Via, unix.EINVAL)
	}
	if four && route.Via == "" && route.Scope == unix.RT_SCOPE_UNIVERSE {
		r.Scope = unix.RT_SCOPE_LINK
	}
	if route.From != "" {
		if r.Src = net.ParseIP(route.From); r.Src == nil {
			return nil, fmt.Errorf("source %q is no address: %w", route.From, unix.EINVAL)
		}
	}
	return r, nil
}
