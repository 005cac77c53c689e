// Package network wires the cluster: a bridge on the control plane's side, and a
// cable from it to each node.
package network

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/config"
)

const bridge = "br0"

// ControlPlane sets up the control plane's side. It runs in that namespace.
func ControlPlane() error {
	if err := address("lo", config.ServiceIP+"/32"); err != nil {
		return err
	}
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}); err != nil {
		return fmt.Errorf("adding bridge: %w", err)
	}
	if err := address(bridge, config.ControlPlaneIP+"/24"); err != nil {
		return err
	}
	// A default route, so that programs find an address of their own to use.
	if err := route("", config.ControlPlaneIP, bridge); err != nil {
		return err
	}
	for _, f := range []string{"all", bridge} { // Pods talk through the bridge, not around it
		if err := sysctl("conf/"+f+"/send_redirects", "0"); err != nil {
			return err
		}
	}
	return sysctl("ip_forward", "1")
}

// Cable connects the i-th node, whose network namespace is that of process pid.
func Cable(i, pid int) error {
	br, err := netlink.LinkByName(bridge)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("node%d", i)
	if err := netlink.LinkAdd(&netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: name, MasterIndex: br.Attrs().Index, Flags: net.FlagUp},
		PeerName:      "eth0",
		PeerNamespace: netlink.NsPid(pid),
	}); err != nil {
		return fmt.Errorf("adding cable to node %d: %w", i, err)
	}
	return route(config.PodRange(i), config.NodeIP(i), bridge)
}

// Node sets up the i-th node's side. It runs in the node's namespace.
func Node(i int) error {
	if err := address("lo", ""); err != nil {
		return err
	}
	if err := address("eth0", config.NodeIP(i)+"/24"); err != nil {
		return err
	}
	if err := route("", config.ControlPlaneIP, "eth0"); err != nil {
		return err
	}
	return sysctl("ip_forward", "1")
}

// Unplug removes what containers left in a node's namespace: the Pods' bridge and
// their cables. Other interfaces are hardware as far as a node is concerned.
func Unplug() error {
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	var errs error
	for _, l := range links {
		kind := l.Type()
		if l.Attrs().Name == "eth0" || (kind != "veth" && kind != "bridge") {
			continue
		}
		if err := netlink.LinkDel(l); err != nil && !gone(err) {
			errs = errors.Join(errs, fmt.Errorf("removing %s: %w", l.Attrs().Name, err))
		}
	}
	return errs
}

func gone(err error) bool {
	var notFound netlink.LinkNotFoundError
	return errors.Is(err, unix.ENODEV) || errors.As(err, &notFound)
}

// address gives an interface an address, if any, and turns it on.
func address(link, cidr string) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return fmt.Errorf("interface %s: %w", link, err)
	}
	if cidr != "" {
		a, err := netlink.ParseAddr(cidr)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(l, a); err != nil {
			return fmt.Errorf("giving %s address %s: %w", link, cidr, err)
		}
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("turning %s on: %w", link, err)
	}
	return nil
}

// route sends what is for a network (empty: everything) through a gateway.
func route(cidr, via, link string) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	r := &netlink.Route{LinkIndex: l.Attrs().Index, Gw: net.ParseIP(via)}
	if via == config.ControlPlaneIP && link == bridge {
		r.Gw, r.Scope = nil, netlink.SCOPE_LINK
	}
	if cidr == "" {
		cidr = "0.0.0.0/0"
	}
	if _, r.Dst, err = net.ParseCIDR(cidr); err != nil {
		return err
	}
	if err := netlink.RouteAdd(r); err != nil {
		return fmt.Errorf("adding route to %s: %w", cidr, err)
	}
	return nil
}

func sysctl(name, value string) error {
	err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0)
	if err != nil {
		return fmt.Errorf("setting net.ipv4.%s: %w", strings.ReplaceAll(name, "/", "."), err)
	}
	return nil
}
