package guest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// The state that each test finds, and leaves: all NICs named as in the topology, up,
// each with an address of its own network and, but for the uplink, with an RDMA
// device; the default route through the uplink; RDMA devices shared between
// namespaces.

// addressOf is the address of a NIC on the host; its network is its own.
func addressOf(n topology.NIC) string {
	for i, other := range topology.NICs {
		if other == n {
			return fmt.Sprintf("10.%d.0.1/24", 10+i)
		}
	}
	return "10.9.0.1/24" // the spare one
}

// gidOf is the GID that goes with addressOf.
func gidOf(n topology.NIC) string {
	var second byte
	if _, err := fmt.Sscanf(addressOf(n), "10.%d.", &second); err != nil {
		panic(err)
	}
	return ipv4GID(10, second, 0, 1)
}

// gateway is the next hop of the default route.
const gateway = "10.16.0.254"

// setUp makes that state, after the kernel has found its devices.
func setUp() error {
	for _, n := range topology.NICs {
		if err := within(patience, func() error { return goHome(n) }); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	if err := errors.Join(rememberAddresses(), openMonitor()); err != nil {
		return err
	}
	uplink, err := netlink.LinkByName(topology.Uplink.Name)
	if err != nil {
		return err
	}
	route, err := defaultRoute(uplink)
	if err != nil {
		return err
	}
	if err := netlink.RouteReplace(route); err != nil {
		return err
	}
	for _, n := range topology.NICs {
		if err := within(patience, func() error { return atHome(n) }); err != nil {
			return err
		}
	}
	return nil
}

func defaultRoute(uplink netlink.Link) (*netlink.Route, error) {
	all, err := netlink.ParseIPNet("0.0.0.0/0")
	if err != nil {
		return nil, err
	}
	via, err := netlink.ParseIPNet(gateway + "/32")
	if err != nil {
		return nil, err
	}
	return &netlink.Route{LinkIndex: uplink.Attrs().Index, Dst: all, Gw: via.IP}, nil
}

// goHome makes a NIC what it is at home, with the kernel's bare calls.
func goHome(n topology.NIC) error {
	l, err := byMAC(n.MAC)
	if err != nil {
		return err
	}
	if l.Attrs().Name != n.Name {
		if err := errors.Join(netlink.LinkSetDown(l), netlink.LinkSetName(l, n.Name)); err != nil {
			return err
		}
	}
	address, err := netlink.ParseAddr(addressOf(n))
	if err != nil {
		return err
	}
	if err := errors.Join(netlink.AddrReplace(l, address), netlink.LinkSetMTU(l, 1500), netlink.LinkSetUp(l)); err != nil {
		return err
	}
	if n.RDMA == "" {
		return nil
	}
	if _, err := netlink.RdmaLinkByName(n.RDMA); err == nil {
		return nil
	}
	return netlink.RdmaLinkAdd(n.RDMA, "fakeroce", n.Name)
}

// atHome says what is yet missing.
func atHome(n topology.NIC) error {
	l, err := netlink.LinkByName(n.Name)
	if err != nil {
		return err
	}
	if a := l.Attrs(); a.HardwareAddr.String() != n.MAC || a.OperState != netlink.OperUp {
		return fmt.Errorf("%s has %s and is %s", n.Name, a.HardwareAddr, a.OperState)
	}
	if n.RDMA == "" {
		return nil
	}
	return errors.Join(portIs("/", n.RDMA, "ACTIVE"), hasGID("/", n.RDMA, gidOf(n)))
}

// disturbs says which NICs a test will do something to. They are put back when it has
// ended; that their links come up again is waited for by who needs them next.
func disturbs(t *testing.T, nics ...topology.NIC) {
	t.Helper()
	settled(t, nics...)
	t.Cleanup(func() {
		for _, n := range nics {
			eventually(t, func() error { return goHome(n) })
		}
	})
}

// rested are the NICs that tests borrow, the one that has been left alone for longest
// first. Near is not among them: it is for tests of virtual functions.
var rested = []topology.NIC{topology.Below, topology.Beside, topology.Twin, topology.SameNode, topology.Far}

// lend gives a test a NIC to do something to.
func lend(t *testing.T) topology.NIC {
	t.Helper()
	n := rested[0]
	rested = append(rested[1:], n)
	disturbs(t, n)
	return n
}

// settled waits until the NICs are as set-up left them.
func settled(t *testing.T, nics ...topology.NIC) {
	t.Helper()
	for _, n := range nics {
		eventually(t, func() error { return atHome(n) })
	}
}

func byMAC(mac string) (netlink.Link, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if a := l.Attrs(); a.HardwareAddr.String() == mac && (l.Type() == "device" || l.Type() == "") {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no interface has the hardware address %s", mac)
}

// portIs compares an RDMA port's state, "4: ACTIVE" in sysfs, with a word.
func portIs(root, device, want string) error {
	state, err := text(root, "sys/class/infiniband", device, "ports/1/state")
	if err == nil && !strings.HasSuffix(state, ": "+want) {
		err = fmt.Errorf("port of %s is %q, not %s", device, state, want)
	}
	return err
}

// function is the PCI address of what a name in sysfs stands for.
func function(t *testing.T, class, name string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(filepath.Join("/sys/class", class, name, "device"))
	must(t, err)
	return filepath.Base(path)
}

// gpuAddress is where a stand-in for a GPU is.
func gpuAddress(t *testing.T, g topology.GPU) string {
	t.Helper()
	return read(t, "/sys/bus/pci/slots", fmt.Sprint(g.Slot), "address") + ".0"
}

// within asks until the answer is nil, or the time is over.
func within(limit time.Duration, ask func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(limit); ; {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-over:
			return fmt.Errorf("after %s still: %w", limit, err)
		}
	}
}

// eventually is within a test's patience.
func eventually(t *testing.T, ask func() error) {
	t.Helper()
	must(t, within(patience, ask))
}
