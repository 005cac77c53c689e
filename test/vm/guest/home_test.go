package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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
// sysctls, routes, DCB settings.
func furnish(t *testing.T, nics *rdma.NICs, n topology.NIC) machine.NICHome {
	t.Helper()
	l, own := link(t, n.Name), networkOf(n)
	for _, a := range []string{own + ".0.1/16", v6Of(n)} {
		address, err := netlink.ParseAddr(a)
		must(t, err)
		must(t, netlink.AddrAdd(l, address))
	}
	must(t, netlink.LinkSetMTU(l, 4200))
	for name, value := range sysctls {
		write(t, fmt.Sprint(value), sysctlOf(n.Name, name))
	}
	for to, via := range waysOf(n) {
		_, prefix, err := net.ParseCIDR(to)
		must(t, err)
		route := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: prefix, Gw: net.ParseIP(via), Priority: 50, Flags: unix.RTNH_F_ONLINK}
		if to == everywhere {
			route.Table = tableOf(n)
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

// What furnish gives: addresses of a network that is only this NIC's, and routes by
// their next hops. One of those is on no network of the NIC's; one route is in a table of
// its own.
const everywhere = "0.0.0.0/0"

func indexOf(n topology.NIC) int        { return slices.Index(topology.NICs, n) }
func networkOf(n topology.NIC) string   { return fmt.Sprintf("10.%d", 100+10*indexOf(n)) }
func v6Of(n topology.NIC) string        { return fmt.Sprintf("fd00:%d::1/64", 100+10*indexOf(n)) }
func tableOf(n topology.NIC) int        { return 177 + indexOf(n) }
func neighbourOf(n topology.NIC) string { return fmt.Sprintf("10.%d", 101+10*indexOf(n)) }
func waysOf(n topology.NIC) map[string]string {
	return map[string]string{
		neighbourOf(n) + ".0.0/17":   networkOf(n) + ".0.254",
		neighbourOf(n) + ".128.0/17": neighbourOf(n) + ".0.1",
		everywhere:                   networkOf(n) + ".0.253",
	}
}

// sysctls are other than a new interface's.
var sysctls = map[string]int{"ipv4/conf/arp_ignore": 1, "ipv6/conf/accept_ra": 2}

func sysctlOf(link, name string) string {
	return filepath.Join("/proc/sys/net", filepath.Dir(name), link, filepath.Base(name))
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
		for name := range sysctls {
			write(t, read(t, sysctlOf("default", name)), sysctlOf(n.Name, name))
		}
		must(t, netlink.RdmaLinkDel(n.RDMA)) // its DCB settings go with it
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: tableOf(n)}, netlink.RT_FILTER_TABLE)
		must(t, err)
		for _, r := range routes {
			must(t, netlink.RouteDel(&r))
		}
	})
}

// TestNICHome reads all of it.
func TestNICHome(t *testing.T) {
	nic := lend(t)
	empty(t, nic)
	nics := newAdapter(t)
	got := furnish(t, nics, nic)
	want := machine.NICHome{
		Address: addresses[nic.Name],
		RDMA:    nic.RDMA,
		DCB:     lossless,
		Netdevs: []machine.NetdevHome{{
			Name: nic.Name, MAC: nic.MAC, MTU: 4200, Up: true,
			Addresses: []string{addressOf(nic), networkOf(nic) + ".0.1/16", v6Of(nic)},
		}},
	}
	routes := got.Netdevs[0].Routes
	for name, value := range sysctls {
		if is := got.Netdevs[0].Sysctls[name]; is != value {
			t.Errorf("sysctl %s: %d, want %d", name, is, value)
		}
	}
	got.Netdevs[0].Routes, got.Netdevs[0].Sysctls = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	ways := map[string]string{}
	for _, r := range routes {
		ways[r.To] = r.Via
	}
	if !reflect.DeepEqual(ways, waysOf(nic)) {
		t.Errorf("routes %+v", routes)
	}
}

// TestBringHome: NICs come home with all that they had, however they were lost.
func TestBringHome(t *testing.T) {
	// What becomes of a NIC and its Pod before it is brought home.
	fates := map[string]func(p *pod, n topology.NIC){
		"from the Pod": func(*pod, topology.NIC) {},
		"from the Pod, renamed and up": func(p *pod, n topology.NIC) {
			p.rename(t, n.Name, "net1")
			p.up(t, "net1", "10.99.0.1/24")
		},
		"after the Pod's end": func(p *pod, n topology.NIC) {
			p.rename(t, n.Name, "net1")
			p.end()
			eventually(t, func() error { _, err := byMAC(n.MAC); return err })
		},
	}
	inEachMode(t, func(t *testing.T, mode string) {
		nics, lost := newAdapter(t), map[string]machine.NICHome{}
		for name, fate := range fates {
			n := lend(t)
			empty(t, n)
			home := furnish(t, nics, n)
			if home.RDMAMoves != (mode == "exclusive") {
				t.Errorf("the RDMA device moves: %v", home.RDMAMoves)
			}
			p := newPod(t)
			p.take(t, n, mode)
			fate(p, n)
			lost[name] = home
		}
		for range 2 { // once more is no error
			for _, home := range lost {
				bring(t, nics, home)
			}
			for name, home := range lost {
				if err := isHome(t, nics, home); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
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
	must(t, isHome(t, nics, want))
}

// isHome waits until addresses of version 6 are no more tentative.
func isHome(t *testing.T, nics *rdma.NICs, want machine.NICHome) error {
	t.Helper()
	return within(patience, func() error {
		got, err := nics.NICHome(t.Context(), want.Address)
		if err == nil && !reflect.DeepEqual(got, want) {
			err = fmt.Errorf("at home it is\n%+v\nand was\n%+v", got, want)
		}
		return err
	})
}

// TestBringHomeNameTaken: another interface keeps its name. When it has gone, all is as
// it was.
func TestBringHomeNameTaken(t *testing.T) {
	nic := lend(t)
	exclusive(t)
	nics := newAdapter(t)
	home, err := nics.NICHome(t.Context(), addresses[nic.Name])
	must(t, err)
	p := newPod(t)
	p.take(t, nic, "exclusive")
	thief := added(t, &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "thief"}})
	must(t, netlink.LinkSetName(thief, nic.Name))
	p.end()
	eventually(t, func() error { _, err := byMAC(nic.MAC); return err })
	eventually(t, func() error {
		if err := nics.BringHome(t.Context(), home); !errors.Is(err, failure.Conflict) || !strings.Contains(err.Error(), nic.Name) {
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
	nic := lend(t)
	nics := newAdapter(t)
	home, err := nics.NICHome(t.Context(), addresses[nic.Name])
	must(t, err)
	p := newPod(t)
	p.take(t, nic, "shared")
	proc := t.TempDir() // without processes
	must(t, os.Symlink("/proc/sys", filepath.Join(proc, "sys")))
	blind := rdma.New(rdma.Options{ProcRoot: proc})
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
	one, other := newNICs(file), newNICs(file)
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
