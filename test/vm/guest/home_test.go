package guest

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// furnish gives the NIC all that can be lost on the way: a second address, an MTU,
// routes, DCB settings.
func furnish(t *testing.T, nics *rdma.NICs, n topology.NIC) machine.NICHome {
	t.Helper()
	l := link(t, n.Name)
	for _, a := range []string{"10.77.0.1/16", "fd00:77::1/64"} {
		address, err := netlink.ParseAddr(a)
		must(t, err)
		must(t, netlink.AddrAdd(l, address))
	}
	must(t, netlink.LinkSetMTU(l, 4200))
	for _, r := range []struct {
		to, via string
		table   int
	}{{"10.78.0.0/16", "10.77.0.254", 0}, {"10.79.0.0/16", "10.78.0.1", 0}, {"0.0.0.0/0", "10.77.0.253", 177}} {
		to, err := netlink.ParseIPNet(r.to)
		must(t, err)
		route := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: to, Gw: net.ParseIP(r.via), Table: r.table, Priority: 50}
		if r.to == "10.79.0.0/16" {
			route.Flags = unix.RTNH_F_ONLINK
		}
		must(t, netlink.RouteAdd(route))
	}
	_, err := nics.SetDCB(t.Context(), addresses[n.Name], lossless)
	must(t, err)
	// An address of version 6 is tentative at first, and cannot be told of then.
	eventually(t, func() error {
		home, err := nics.NICHome(t.Context(), addresses[n.Name])
		if err == nil && (len(home.Netdevs) != 1 || len(home.Netdevs[0].Addresses) != 3) {
			err = errors.New("not all addresses are there")
		}
		return err
	})
	home, err := nics.NICHome(t.Context(), addresses[n.Name])
	must(t, err)
	return home
}

// lossless is what administrators set for RoCE.
var lossless = machine.DCB{
	PFC:   [8]bool{3: true},
	Trust: machine.TrustDSCP,
	DSCP:  []machine.DSCPPriority{{DSCP: 26, Priority: 3}, {DSCP: 48, Priority: 6}},
	ETS: &machine.ETS{
		Class:     [8]uint8{0, 0, 0, 1, 0, 0, 0, 0},
		Bandwidth: [8]uint8{50, 50},
		Algorithm: [8]uint8{2, 2, 0, 0, 0, 0, 0, 0},
	},
}

// empty takes away what furnish gave, but for what a move takes away anyway.
func empty(t *testing.T, n topology.NIC) {
	t.Helper()
	t.Cleanup(func() {
		l := link(t, n.Name)
		addresses, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		must(t, err)
		for _, a := range addresses {
			if a.IP.To4() != nil || !a.IP.IsLinkLocalUnicast() {
				must(t, netlink.AddrDel(l, &a))
			}
		}
		must(t, netlink.RdmaLinkDel(n.RDMA)) // its DCB settings go with it
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: 177}, netlink.RT_FILTER_TABLE)
		must(t, err)
		for _, r := range routes {
			must(t, netlink.RouteDel(&r))
		}
	})
}

// TestNICHome reads all of it.
func TestNICHome(t *testing.T) {
	disturbs(t, topology.Near)
	empty(t, topology.Near)
	nics := newAdapter(t)
	got := furnish(t, nics, topology.Near)
	want := machine.NICHome{
		Address: addresses[topology.Near.Name],
		RDMA:    topology.Near.RDMA,
		DCB:     lossless,
		Netdevs: []machine.NetdevHome{{
			Name: topology.Near.Name, MAC: topology.Near.MAC, MTU: 4200, Up: true,
			Addresses: []string{addressOf(topology.Near), "10.77.0.1/16", "fd00:77::1/64"},
		}},
	}
	routes := got.Netdevs[0].Routes
	got.Netdevs[0].Routes = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	ways := map[string]string{}
	for _, r := range routes {
		ways[r.To] = r.Via
	}
	if want := map[string]string{"10.78.0.0/16": "10.77.0.254", "10.79.0.0/16": "10.78.0.1", "0.0.0.0/0": "10.77.0.253"}; !reflect.DeepEqual(ways, want) {
		t.Errorf("routes %+v", routes)
	}
}

// TestBringHome: a NIC comes home with all that it had, however it was lost.
func TestBringHome(t *testing.T) {
	// What becomes of the NIC and its Pod before it is brought home.
	fates := map[string]func(t *testing.T, p *pod){
		"from the Pod": func(*testing.T, *pod) {},
		"from the Pod, renamed and up": func(t *testing.T, p *pod) {
			p.rename(t, topology.Near.Name, "net1")
			p.up(t, "net1", "10.99.0.1/24")
		},
		"after the Pod's end": func(t *testing.T, p *pod) {
			p.rename(t, topology.Near.Name, "net1")
			p.end()
			eventually(t, func() error { _, err := byMAC(topology.Near.MAC); return err })
		},
	}
	for _, mode := range []string{"shared", "exclusive"} {
		for name, fate := range fates {
			t.Run(mode+", "+name, func(t *testing.T) {
				disturbs(t, topology.Near)
				if mode == "exclusive" {
					exclusive(t)
				}
				empty(t, topology.Near)
				nics := newAdapter(t)
				home := furnish(t, nics, topology.Near)
				if home.RDMAMoves != (mode == "exclusive") {
					t.Errorf("the RDMA device moves: %v", home.RDMAMoves)
				}
				p := newPod(t)
				p.take(t, topology.Near, mode)
				fate(t, p)
				bring(t, nics, home)
				checkHome(t, nics, home)
				must(t, nics.BringHome(t.Context(), home)) // once more is no error
				checkHome(t, nics, home)
			})
		}
	}
}

// bring tries until the kernel has given the NIC back.
func bring(t *testing.T, nics *rdma.NICs, home machine.NICHome) {
	t.Helper()
	eventually(t, func() error {
		err := nics.BringHome(t.Context(), home)
		if err != nil && !errors.Is(err, failure.Busy) {
			t.Fatal(err)
		}
		return err
	})
}

func checkHome(t *testing.T, nics *rdma.NICs, want machine.NICHome) {
	t.Helper()
	eventually(t, func() error { // until addresses of version 6 are no more tentative
		got, err := nics.NICHome(t.Context(), want.Address)
		if err == nil && !reflect.DeepEqual(got, want) {
			err = errors.New("it is not as it was")
		}
		return err
	})
	got, err := nics.NICHome(t.Context(), want.Address)
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("at home it is\n%+v\nand was\n%+v", got, want)
	}
}

// TestBringHomeNameTaken: another interface keeps its name. When it has gone, all is as
// it was.
func TestBringHomeNameTaken(t *testing.T) {
	disturbs(t, topology.Near)
	exclusive(t)
	nics := newAdapter(t)
	home, err := nics.NICHome(t.Context(), addresses[topology.Near.Name])
	must(t, err)
	p := newPod(t)
	p.take(t, topology.Near, "exclusive")
	thief := added(t, &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "thief"}})
	must(t, netlink.LinkSetName(thief, topology.Near.Name))
	p.end()
	eventually(t, func() error { _, err := byMAC(topology.Near.MAC); return err })
	eventually(t, func() error {
		if err := nics.BringHome(t.Context(), home); !errors.Is(err, failure.Conflict) || !strings.Contains(err.Error(), topology.Near.Name) {
			return err
		}
		return nil
	})
	must(t, netlink.LinkSetName(thief, "thief"))
	bring(t, nics, home)
	checkHome(t, nics, home)
}

// TestBringHomeOfClosed: what is in a namespace that no path leads to comes when that
// ends; until then it is busy.
func TestBringHomeOfClosed(t *testing.T) {
	disturbs(t, topology.Near)
	nics := newAdapter(t)
	home, err := nics.NICHome(t.Context(), addresses[topology.Near.Name])
	must(t, err)
	p := newPod(t)
	p.take(t, topology.Near, "shared")
	blind := rdma.New(rdma.Options{ProcRoot: t.TempDir()})
	checkError(t, blind.BringHome(t.Context(), home), failure.Busy)
	_, err = blind.NICHome(t.Context(), home.Address)
	checkError(t, err, failure.Conflict)
	p.end()
	bring(t, blind, home)
	checkHome(t, nics, home)
}

// TestBringHomeIsOneAtATime: a move waits for another process's, not longer than its
// context.
func TestBringHomeIsOneAtATime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	one, other := rdma.New(rdma.Options{LockFile: file}), rdma.New(rdma.Options{LockFile: file})
	home, err := one.NICHome(t.Context(), addresses[topology.Near.Name])
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := one.BringHome(ctx, home); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	both := make(chan error)
	for _, nics := range []*rdma.NICs{one, other} {
		go func() { both <- nics.BringHome(t.Context(), home) }()
	}
	must(t, errors.Join(<-both, <-both))
}
