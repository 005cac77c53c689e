package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// These tests are of the kernel alone. The adapter, the hook and the simulator are
// written for a kernel that does this; a newer one that does not would show here.

// TestExclusiveMode: RDMA devices belong to one namespace, but the names of their
// device nodes are everybody's, and the nodes can be opened only where the device is.
func TestExclusiveMode(t *testing.T) {
	nic := lend(t)
	exclusive(t)
	p := newPod(t)
	p.take(t, nic, "exclusive")

	if err := absent("/sys/class/infiniband/" + nic.RDMA); err != nil {
		t.Error("on the host:", err)
	}
	inside, err := os.ReadDir(filepath.Join(p.root(), "sys/class/infiniband"))
	if err != nil || len(inside) != 1 || inside[0].Name() != nic.RDMA {
		t.Errorf("in the Pod there are %v, %v", inside, err)
	}
	node := nodeOf(t, nic.RDMA)
	for place, verbs := range map[string]string{"host": "/", "Pod": p.root()} {
		names, err := os.ReadDir(filepath.Join(verbs, "sys/class/infiniband_verbs"))
		if !slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() == filepath.Base(node) }) {
			t.Errorf("%s is not in the %s's infiniband_verbs: %v, %v", node, place, names, err)
		}
	}
	if err := open(node); !errors.Is(err, unix.EPERM) {
		t.Errorf("the host opens what is the Pod's: %v", err)
	}
	if err := p.inside(t, func() error { return open(node) }); err != nil {
		t.Errorf("the Pod does not open what is its own: %v", err)
	}
}

// nodeOf finds an RDMA device's node, wherever the device is.
func nodeOf(t *testing.T, device string) string {
	t.Helper()
	files, err := filepath.Glob("/sys/class/infiniband_verbs/uverbs*/ibdev")
	must(t, err)
	for _, file := range files {
		if read(t, file) == device {
			return "/dev/infiniband/" + filepath.Base(filepath.Dir(file))
		}
	}
	t.Fatalf("%s has no node", device)
	return ""
}

// TestNodesAreRenumbered: a move takes the lowest number that is free.
func TestNodesAreRenumbered(t *testing.T) {
	exclusive(t)
	freed, moved := lend(t), lend(t)
	if nodeOf(t, freed.RDMA) > nodeOf(t, moved.RDMA) { // all numbers have one digit
		freed, moved = moved, freed
	}
	lowest, before := nodeOf(t, freed.RDMA), nodeOf(t, moved.RDMA)
	must(t, netlink.RdmaLinkDel(freed.RDMA))
	p := newPod(t)
	p.takeRDMA(t, moved.RDMA)
	if after := nodeOf(t, moved.RDMA); after == before || after != lowest {
		t.Errorf("it was %s and is %s, while %s was free", before, after, lowest)
	}
}

// TestModeNeedsOneNamespace: the mode cannot be switched while there is another.
func TestModeNeedsOneNamespace(t *testing.T) {
	p := newPod(t)
	if err := netlink.RdmaSystemSetNetnsMode("exclusive"); !errors.Is(err, unix.EBUSY) {
		t.Errorf("with another namespace: %v", err)
	}
	p.end()
	exclusive(t)
}

// TestGIDsNeedAnAddress: after a move the GIDs of addresses are gone, and the port is
// down, until the interface has an address and is up again.
func TestGIDsNeedAnAddress(t *testing.T) {
	nic := lend(t)
	exclusive(t)
	p := newPod(t)
	p.take(t, nic, "exclusive")
	eventually(t, func() error { return portIs(p.root(), nic.RDMA, "DOWN") })
	eventually(t, func() error {
		if hasGID(p.root(), nic.RDMA, gidOf(nic)) == nil {
			return errors.New("the GID is still there")
		}
		return nil
	})
	p.up(t, nic.Name, addressOf(nic))
	eventually(t, func() error { return hasGID(p.root(), nic.RDMA, gidOf(nic)) })
	eventually(t, func() error { return portIs(p.root(), nic.RDMA, "ACTIVE") })
}

// TestNamespaceDies: interface and RDMA device come back, the interface under the
// name that it had in the Pod, down and without its addresses.
func TestNamespaceDies(t *testing.T) {
	nic := lend(t)
	exclusive(t)
	p := newPod(t)
	p.take(t, nic, "exclusive")
	p.rename(t, nic.Name, "net1")
	p.up(t, "net1", "10.99.0.1/24")
	p.end()

	eventually(t, func() error { _, err := byMAC(nic.MAC); return err })
	eventually(t, func() error { return portIs("/", nic.RDMA, "DOWN") })
	back, err := byMAC(nic.MAC)
	must(t, err)
	addresses, err := netlink.AddrList(back, netlink.FAMILY_ALL)
	must(t, err)
	if a := back.Attrs(); a.Name != "net1" || a.RawFlags&unix.IFF_UP != 0 || len(addresses) != 0 {
		t.Errorf("it came back as %s, flags %v, with %v", a.Name, a.RawFlags, addresses)
	}
}

// TestNamespaceDiesNameTaken: where somebody else has the name, the kernel gives
// another one. The RDMA device comes back all the same: its name is unique everywhere.
func TestNamespaceDiesNameTaken(t *testing.T) {
	nic := lend(t)
	exclusive(t)
	p := newPod(t)
	p.take(t, nic, "exclusive")
	taken := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: nic.Name}}
	must(t, netlink.LinkAdd(taken))
	t.Cleanup(func() { _ = netlink.LinkDel(taken) })
	p.end()
	eventually(t, func() error { _, err := byMAC(nic.MAC); return err })
	if back, err := byMAC(nic.MAC); err != nil || back.Attrs().Name == nic.Name {
		t.Errorf("it came back as %v, %v", back, err)
	}
	eventually(t, func() error { return portIs("/", nic.RDMA, "DOWN") })
}

// TestEmptyGIDSlot: what kind of GID is in an empty slot cannot be asked.
func TestEmptyGIDSlot(t *testing.T) {
	const slot = "200"
	port := "/sys/class/infiniband/" + topology.Near.RDMA + "/ports/1/"
	if gid := read(t, port, "gids", slot); strings.Trim(gid, "0:") != "" {
		t.Fatalf("slot %s is not empty: %s", slot, gid)
	}
	for _, attribute := range []string{"types", "ndevs"} {
		if v, err := text(port, "gid_attrs", attribute, slot); !errors.Is(err, unix.EINVAL) {
			t.Errorf("gid_attrs/%s/%s: %q, %v", attribute, slot, v, err)
		}
	}
}

// TestRXEDies: the kernel's own software RDMA does not survive a move, which is why
// there is fakeroce.
func TestRXEDies(t *testing.T) {
	must(t, netlink.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "soft"}}))
	t.Cleanup(func() {
		if l, err := netlink.LinkByName("soft"); err == nil {
			_ = netlink.LinkDel(l)
		}
	})
	must(t, netlink.RdmaLinkAdd("rxe0", "rxe", "soft"))
	p := newPod(t)
	p.takeNetdev(t, "soft")
	eventually(t, func() error { return absent("/sys/class/infiniband/rxe0") })
}

// TestVFs: virtual functions hang below the same port as their physical function, and
// tell which one that is.
func TestVFs(t *testing.T) {
	pf := "/sys/class/net/" + topology.Near.Name + "/device"
	write(t, "2", pf, "sriov_numvfs")
	t.Cleanup(func() { write(t, "0", pf, "sriov_numvfs") })
	address := function(t, "net", topology.Near.Name)
	for i := range 2 {
		vf := filepath.Join(pf, fmt.Sprint("virtfn", i))
		physical, err := filepath.EvalSymlinks(filepath.Join(vf, "physfn"))
		if err != nil || filepath.Base(physical) != address {
			t.Errorf("VF %d is of %s, %v", i, physical, err)
		}
		if node := read(t, vf, "numa_node"); node != "0" {
			t.Errorf("VF %d is on NUMA node %s", i, node)
		}
		eventually(t, func() error {
			found, err := os.ReadDir(filepath.Join(vf, "net"))
			if err == nil && len(found) != 1 {
				err = fmt.Errorf("it has %d interfaces", len(found))
			}
			return err
		})
	}
	if err := os.WriteFile(filepath.Join(pf, "sriov_numvfs"), []byte("3"), 0); !errors.Is(err, unix.EBUSY) {
		t.Errorf("from two to three: %v", err)
	}
}
