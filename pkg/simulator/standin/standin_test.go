package standin_test

import (
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/standin"
)

func TestStandInsAreAsDescribed(t *testing.T) {
	n := start(t, "nic-only")
	spec := n.Spec().NICs[0].Netdevs[0]
	l := n.link(t, spec.Name)
	if l == nil {
		t.Fatalf("there is no %s", spec.Name)
	}
	a := l.Attrs()
	if a.HardwareAddr.String() != spec.MAC || a.MTU != 9000 || a.Flags&net.FlagUp == 0 {
		t.Errorf("it is %+v", a)
	}
	addresses, err := n.AddrList(l, netlink.FAMILY_V4)
	must(t, err)
	if len(addresses) != 1 || addresses[0].IPNet.String() != "198.18.0.1/24" {
		t.Errorf("it has addresses %v", addresses)
	}
	routes, err := n.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{LinkIndex: a.Index, Dst: network(t, "198.19.0.0/16")}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_DST)
	must(t, err)
	if len(routes) != 1 || routes[0].Gw.String() != "198.18.0.254" {
		t.Errorf("it has routes %v", routes)
	}
	must(t, n.stop())
	if l := n.link(t, spec.Name); l != nil {
		t.Error("it outlives its keeper")
	}
}

// TestStandInsFollowTheMachine: cables, cards and virtual functions.
func TestStandInsFollowTheMachine(t *testing.T) {
	n := start(t, "sriov")
	name := n.Spec().NICs[0].Netdevs[0].Name
	carrier := func() bool {
		l := n.link(t, name)
		return l != nil && l.Attrs().OperState == netlink.OperUp
	}
	n.until(t, "a carrier", func(*simulator.State) bool { return carrier() })
	must(t, n.SetLink(name, false))
	n.until(t, "no carrier", func(*simulator.State) bool { return !carrier() })
	must(t, n.SetLink(name, true))
	n.until(t, "a carrier", func(*simulator.State) bool { return carrier() })

	if n.link(t, "enp24s0v3") == nil {
		t.Error("the administrator's VFs are missing")
	}
	must(t, n.SetVFs("mlx5_0", 0))
	n.until(t, "no VF", func(*simulator.State) bool { return n.link(t, "enp24s0v3") == nil })
	must(t, n.SetVFs("mlx5_0", 5))
	n.until(t, "VFs", func(*simulator.State) bool { return n.link(t, "enp24s0v4") != nil })
	must(t, n.Unplug(name))
	n.until(t, "no card", func(*simulator.State) bool { return n.link(t, name) == nil && n.link(t, "enp24s0v4") == nil })
	must(t, n.Plug("mlx5_0"))
	n.until(t, "a card", func(*simulator.State) bool { return carrier() })
	must(t, n.Reboot())
	n.until(t, "VFs again", func(*simulator.State) bool { return n.link(t, "enp24s0v3") != nil })
}

// TestPodEnds: what was in a Pod comes back as a NIC does.
func TestPodEnds(t *testing.T) {
	n := start(t, "nic-only")
	pod, end := newSpace(t)
	spec := n.Spec().NICs
	first := n.netdev(0)
	for i, s := range spec {
		l := n.link(t, s.Netdevs[0].Name)
		must(t, n.LinkSetDown(l))
		must(t, n.LinkSetNsFd(l, int(pod.fd)))
		l = pod.link(t, s.Netdevs[0].Name)
		must(t, pod.LinkSetName(l, []string{"net1", "net2"}[i]))
		must(t, pod.LinkSetMTU(l, 4200))
		must(t, pod.LinkSetUp(l))
	}
	n.until(t, "the name in the Pod", func(s *simulator.State) bool {
		d := first(s)
		return d.Namespace != "" && d.Name == "net1" && d.MTU == 4200 && d.Up && len(d.Addresses) == 0
	})
	n.until(t, "the other's name in the Pod", func(s *simulator.State) bool { return n.netdev(1)(s).Name == "net2" })
	dummy := netlink.NewLinkAttrs()
	dummy.Name = "net2"
	must(t, n.LinkAdd(&netlink.Veth{LinkAttrs: dummy, PeerName: "other"}))
	end()
	n.until(t, "its return", func(s *simulator.State) bool {
		l := n.link(t, "net1")
		return first(s).Namespace == "" && l != nil && l.Attrs().Flags&net.FlagUp == 0 && l.Attrs().MTU == 4200
	})
	if l := n.link(t, "net1"); l.Attrs().HardwareAddr.String() != spec[0].Netdevs[0].MAC {
		t.Errorf("it came back as %+v", l.Attrs())
	}
	n.until(t, "the other's return under another name", func(s *simulator.State) bool {
		return n.netdev(1)(s).Name == "dev0" && n.link(t, "dev0") != nil
	})

	// Somebody makes it what it was.
	l := n.link(t, "net1")
	must(t, n.LinkSetName(l, spec[0].Netdevs[0].Name))
	address, err := netlink.ParseAddr("198.18.0.1/24")
	must(t, err)
	must(t, n.AddrAdd(l, address))
	must(t, n.LinkSetUp(l))
	n.until(t, "all as it was", func(s *simulator.State) bool {
		d := first(s)
		return d.Name == spec[0].Netdevs[0].Name && d.Up && slices.Equal(d.Addresses, []string{"198.18.0.1/24"})
	})
}

// TestRenamedAtOnce: whoever waits for an interface to come back takes it at once, and is
// faster than the keeper at times; there is one of it all the same.
func TestRenamedAtOnce(t *testing.T) {
	n := start(t, "nic-only")
	spec := n.Spec().NICs[0].Netdevs[0]
	n.renames(t, "net1", spec.Name)
	for range 20 {
		pod, end := newSpace(t)
		must(t, n.LinkSetNsFd(n.link(t, spec.Name), int(pod.fd)))
		must(t, pod.LinkSetName(pod.link(t, spec.Name), "net1"))
		n.until(t, "the move", func(s *simulator.State) bool { d := n.netdev(0)(s); return d.Namespace != "" && d.Name == "net1" })
		end()
		n.until(t, "the way back", func(s *simulator.State) bool { d := n.netdev(0)(s); return d.Namespace == "" && d.Name == spec.Name })
		links, err := n.LinkList()
		must(t, err)
		links = slices.DeleteFunc(links, func(l netlink.Link) bool { return l.Attrs().HardwareAddr.String() != spec.MAC })
		if len(links) != 1 {
			t.Fatalf("interfaces: %+v", links)
		}
	}
}

// renames gives interfaces that come under a name another one.
func (n *node) renames(t *testing.T, from, to string) {
	t.Helper()
	updates, done := make(chan netlink.LinkUpdate), make(chan struct{})
	must(t, netlink.LinkSubscribeAt(n.fd, updates, done))
	t.Cleanup(func() { close(done) })
	go func() {
		for u := range updates {
			if u.Header.Type == unix.RTM_NEWLINK && u.Attrs().Name == from {
				_ = n.LinkSetName(u.Link, to) // a later message tells of it again
			}
		}
	}()
}

// TestMovedBack: by whoever fetches it from the Pod, which lives on.
func TestMovedBack(t *testing.T) {
	n := start(t, "nic-only")
	pod, _ := newSpace(t)
	name := n.Spec().NICs[0].Netdevs[0].Name
	must(t, n.LinkSetNsFd(n.link(t, name), int(pod.fd)))
	n.until(t, "the move", func(s *simulator.State) bool { return n.netdev(0)(s).Namespace != "" })
	must(t, pod.LinkSetNsFd(pod.link(t, name), int(n.fd)))
	n.until(t, "the move back", func(s *simulator.State) bool { return n.netdev(0)(s).Namespace == "" })
}

// TestKeeperIsKilled: the next one makes all again, and what was in a Pod is back.
func TestKeeperIsKilled(t *testing.T) {
	n := start(t, "nic-only")
	pod, _ := newSpace(t)
	name := n.Spec().NICs[0].Netdevs[0].Name
	must(t, n.LinkSetNsFd(n.link(t, name), int(pod.fd)))
	n.until(t, "the move", func(s *simulator.State) bool { return n.netdev(0)(s).Namespace != "" })
	inside(t, n.fd, func() error {
		err := standin.Run(t.Context(), n.Machine.Machine, func(string) {}, func() { t.Error("two keepers at a time") })
		if !errors.Is(err, failure.Busy) {
			t.Errorf("a second keeper: %v", err)
		}
		return nil
	})
	must(t, n.stop())
	if pod.link(t, name) != nil {
		t.Error("a stand-in outlives its keeper in a Pod")
	}
	n.run(t)
	n.until(t, "its return", func(s *simulator.State) bool {
		d := n.netdev(0)(s)
		return d.Namespace == "" && !d.Up && n.link(t, name) != nil
	})
}

// TestNameOfAnother: a stand-in takes nobody's name.
func TestNameOfAnother(t *testing.T) {
	n := start(t, "nic-only")
	must(t, n.stop())
	other := netlink.NewLinkAttrs()
	other.Name = n.Spec().NICs[1].Netdevs[0].Name
	must(t, n.LinkAdd(&netlink.Veth{LinkAttrs: other, PeerName: "other"}))
	inside(t, n.fd, func() error {
		err := standin.Run(t.Context(), n.Machine.Machine, func(string) {}, func() { t.Error("it is ready") })
		if !errors.Is(err, failure.Conflict) {
			t.Errorf("with a name taken: %v", err)
		}
		return nil
	})
	if n.link(t, n.Spec().NICs[0].Netdevs[0].Name) != nil {
		t.Error("a stand-in was left behind")
	}
}
