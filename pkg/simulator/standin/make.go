package standin

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// errPending says that a stand-in can be made when one of an earlier keeper has gone.
var errPending = errors.New("an earlier stand-in is still going")

// create makes a stand-in as the machine's state has it.
func (k *Keeper) create(at key, f simulator.Function) error {
	d := f.Netdevs[at.i]
	if err := k.free(d); err != nil {
		return err
	}
	mac, err := net.ParseMAC(d.MAC)
	if err != nil {
		return err
	}
	k.made++
	wireName := fmt.Sprintf("wire%d", k.made)
	pair := netlink.NewLinkAttrs()
	pair.Name, pair.MTU, pair.HardwareAddr = d.Name, d.MTU, mac
	err = k.home.LinkAdd(&netlink.Veth{LinkAttrs: pair, PeerName: wireName, PeerNamespace: netlink.NsFd(k.wires)})
	if err != nil {
		return fmt.Errorf("making veth %s: %w", d.Name, err)
	}
	wire, err := k.wireSide.LinkByName(wireName)
	if err != nil {
		return err
	}
	// Whoever waits for it may have renamed it by now.
	made, err := k.home.LinkByIndex(wire.Attrs().ParentIndex)
	if err != nil {
		return err
	}
	k.wireSpace = made.Attrs().NetNsID
	k.links[at] = &link{mac: d.MAC, generation: f.Generation, wire: wire.Attrs().Index, index: made.Attrs().Index}
	if err := k.setWire(at, f); err != nil {
		return err
	}
	return k.configure(made, f, d)
}

// free finds out whether a name can be had.
func (k *Keeper) free(d simulator.NetdevState) error {
	there, err := k.home.LinkByName(d.Name)
	if err != nil {
		return unlessMissing(err)
	}
	if there.Attrs().HardwareAddr.String() == d.MAC {
		return errPending
	}
	return failure.New(failure.Conflict, "interface %s is there already, with hardware address %s: rename it, or the machine's",
		d.Name, there.Attrs().HardwareAddr)
}

// setWire gives a stand-in a link, or none.
func (k *Keeper) setWire(at key, f simulator.Function) error {
	wire, err := k.wireSide.LinkByIndex(k.links[at].wire)
	if err != nil {
		return err
	}
	if wire.Attrs().Flags&net.FlagUp != 0 == !f.NIC.NoLink {
		return nil
	}
	if f.NIC.NoLink {
		return k.wireSide.LinkSetDown(wire)
	}
	return k.wireSide.LinkSetUp(wire)
}

// uplinkMetric keeps an uplink's default route behind every other.
const uplinkMetric = 1<<32 - 1

func (k *Keeper) configure(made netlink.Link, f simulator.Function, d simulator.NetdevState) error {
	for _, a := range d.Addresses {
		address, err := netlink.ParseAddr(a)
		if err != nil {
			return err
		}
		address.Flags = unix.IFA_F_NODAD
		if err := k.home.AddrAdd(made, address); err != nil {
			k.tell("%s goes without address %s: %v", d.Name, a, err)
		}
	}
	if !d.Up {
		return nil
	}
	if err := k.home.LinkSetUp(made); err != nil {
		return fmt.Errorf("bringing %s up: %w", d.Name, err)
	}
	routes := slices.Clone(d.Routes)
	if f.NIC.Spec.Uplink && f.VF < 0 {
		routes = append(routes, machine.Route{To: "0.0.0.0/0", Metric: uplinkMetric})
	}
	for _, r := range routes {
		if err := k.route(made.Attrs().Index, r); err != nil {
			k.tell("%s goes without the route to %s: %v", d.Name, r.To, err)
		}
	}
	return nil
}

func (k *Keeper) route(index int, r machine.Route) error {
	_, to, err := net.ParseCIDR(r.To)
	if err != nil {
		return err
	}
	route := &netlink.Route{LinkIndex: index, Dst: to, Gw: net.ParseIP(r.Via), Src: net.ParseIP(r.From), Priority: r.Metric, Table: r.Table}
	if r.Via == "" {
		route.Scope = netlink.SCOPE_LINK
	}
	return k.home.RouteAdd(route)
}
