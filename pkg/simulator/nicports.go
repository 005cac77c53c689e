package simulator

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Types of GIDs, as sysfs has them.
const (
	gidV1 = "IB/RoCE v1"
	gidV2 = "RoCE v2"
)

// RateUnknown is the whole part of the 2.5 Gb/s that ports say where they do not know
// better (InfiniBand's first speed).
const RateUnknown = 2

// Ports are those of the function's RDMA device.
func (f Function) Ports() []machine.RDMAPort {
	if f.RDMA == "" {
		return nil
	}
	count := f.NIC.ports()
	if f.VF >= 0 {
		count = 1
	}
	ports := make([]machine.RDMAPort, count)
	for i := range ports {
		p := machine.RDMAPort{Number: i + 1, LinkLayer: f.NIC.Spec.LinkLayer, State: "DOWN", Rate: cmp.Or(f.NIC.Spec.Speed, RateUnknown)}
		up := !f.NIC.NoLink
		if f.NIC.InfiniBand() {
			p.GIDs = []machine.GID{{GID: gid(linkLocal(MAC(f.NIC.Machine, f.Address, i))), Type: gidV1}}
		} else if i < len(f.Netdevs) {
			up = f.Carrier(f.Netdevs[i])
			p.GIDs = f.Netdevs[i].gids()
		}
		if up {
			p.State = "ACTIVE"
		}
		ports[i] = p
	}
	return ports
}

// gids are those that RoCE makes of an interface's addresses: each of both versions,
// the link-local one first.
func (d *NetdevState) gids() []machine.GID {
	addresses := []netip.Addr{linkLocal(d.MAC)}
	for _, a := range d.Addresses {
		if prefix, err := netip.ParsePrefix(a); err == nil && d.Up {
			addresses = append(addresses, prefix.Addr())
		}
	}
	var gids []machine.GID
	for _, a := range addresses {
		for _, kind := range []string{gidV1, gidV2} {
			one := machine.GID{Index: len(gids), GID: gid(a), Type: kind}
			if d.Namespace == "" {
				one.Netdev = d.Name
			}
			gids = append(gids, one)
		}
	}
	return gids
}

// linkLocal is the IPv6 address that goes with a hardware address (RFC 4291, appendix A).
func linkLocal(mac string) netip.Addr {
	b, err := net.ParseMAC(mac)
	if err != nil || len(b) != 6 {
		return netip.IPv6LinkLocalAllNodes() // no interface of ours has such a one
	}
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: b[0] ^ 2, 9: b[1], 10: b[2], 11: 0xff, 12: 0xfe, 13: b[3], 14: b[4], 15: b[5]})
}

// gid is an address as sysfs has it: eight groups, none shortened.
func gid(a netip.Addr) string {
	b := a.As16()
	text := ""
	for i := 0; i < len(b); i += 2 {
		if i > 0 {
			text += ":"
		}
		text += fmt.Sprintf("%02x%02x", b[i], b[i+1])
	}
	return text
}
