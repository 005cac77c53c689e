package tree_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/pci"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/sysfs"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
)

// checkNICs: what the adapter reads in the tree is what the face within the process
// tells.
func checkNICs(t *testing.T, m *simulatortest.Machine) {
	t.Helper()
	described, err := m.NICs().DescribeNICs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sys := filepath.Join(m.Root(), "sys")
	files := sysfs.New(sys)
	addresses, err := files.NICs()
	if err != nil {
		t.Fatal(err)
	}
	if len(addresses) != len(described.NICs) {
		t.Fatalf("the tree has NICs %v, want %d", addresses, len(described.NICs))
	}
	if got := files.CommonNodes(); !slices.Equal(got, described.RDMANodes) {
		t.Errorf("common nodes are %q, want %q", got, described.RDMANodes)
	}
	for i, n := range described.NICs {
		f, err := files.Function(addresses[i])
		if err != nil {
			t.Fatal(err)
		}
		if f.Driver != n.Driver || f.MaxVFs != n.MaxVFs || len(f.VFs) != len(n.VFs) || f.PF != nil {
			t.Errorf("NIC %s: the tree has %+v, want %+v", n.Address, f, n)
		}
		if at := pci.Locate(sys, n.Address); !reflect.DeepEqual(at, n.Location) {
			t.Errorf("NIC %s: it lies at %+v, want %+v", n.Address, at, n.Location)
		}
		checkFunction(t, m, f, n.Netdevs, n.RDMA)
		for k, vf := range n.VFs {
			f, err := files.Function(f.VFs[k].Address)
			if err != nil {
				t.Fatal(err)
			}
			if f.Address != vf.Address || f.PF == nil || *f.PF != n.Address || f.Driver != vf.Driver {
				t.Errorf("VF %s: the tree has %+v", vf.Address, f)
			}
			checkFunction(t, m, f, vf.Netdevs, vf.RDMA)
		}
	}
}

func checkFunction(t *testing.T, m *simulatortest.Machine, f sysfs.Function, netdevs []machine.Netdev, rdma *machine.RDMADevice) {
	t.Helper()
	var got []sysfs.Netdev
	for _, d := range netdevs {
		got = append(got, sysfs.Netdev{Name: d.Name, Speed: d.Speed})
		link, err := filepath.EvalSymlinks(filepath.Join(m.Root(), "sys/class/net", d.Name, "device"))
		if err != nil || filepath.Base(link) != f.Address.String() {
			t.Errorf("%s: interface %s leads to %s, %v", f.Address, d.Name, link, err)
		}
	}
	if !slices.Equal(f.Netdevs, got) {
		t.Errorf("%s: the tree has interfaces %+v, want %+v", f.Address, f.Netdevs, got)
	}
	if (f.RDMA == nil) != (rdma == nil) || rdma != nil && !reflect.DeepEqual(f.RDMA.RDMADevice, *rdma) {
		t.Errorf("%s: the tree has RDMA device\n%+v, want\n%+v", f.Address, f.RDMA, rdma)
	}
}

func TestNICsOfEveryMachine(t *testing.T) {
	for _, name := range machines.Names() {
		t.Run(name, func(t *testing.T) {
			m := simulatortest.New(t, name)
			checkNICs(t, m)
			checkSynced(t, m)
		})
	}
}

// TestNICsFollow: the tree follows each change at once, and Sync has nothing left to do.
func TestNICsFollow(t *testing.T) {
	m := simulatortest.New(t, "sriov")
	function, vf := m.Spec().NICs[0].Address, simulator.VFAddress(m.Spec().NICs[0].Address, 2)
	homes := map[machine.Address]machine.NICHome{}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"link down", func() error { return m.SetLink("mlx5_0", false) }},
		{"link up", func() error { return m.SetLink("mlx5_0", true) }},
		{"VFs taken away", func() error { return m.SetVFs(function.String(), 0) }},
		{"VFs made", func() error { return m.SetVFs(function.String(), 5) }},
		{"VFs of the other", func() error { return m.SetVFs("mlx5_1", 6) }},
		{"exclusive mode", func() error { return m.SetRDMAExclusive(true) }},
		{"homes", func() (err error) {
			for _, a := range []machine.Address{function, vf} {
				if homes[a], err = m.NICs().NICHome(t.Context(), a); err != nil {
					return err
				}
			}
			return nil
		}},
		{"moved", func() error { return m.MoveNIC(hardware.NICMove{Home: homes[function], Name: "net1"}, "pod") }},
		{"VF moved", func() error { return m.MoveNIC(hardware.NICMove{Home: homes[vf]}, "pod") }},
		{"name taken", func() error { return m.TakeName("net1") }},
		{"namespace ended", func() error { return m.EndNamespace("pod") }},
		{"brought home", func() error { return m.NICs().BringHome(t.Context(), homes[function]) }},
		{"name given", func() error { return m.GiveName("net1") }},
		{"unplugged", func() error { return m.Unplug("mlx5_0") }},
		{"plugged in", func() error { return m.Plug("mlx5_0") }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		checkNICs(t, m)
		checkSynced(t, m)
		if t.Failed() {
			t.Fatalf("after %s", step.name)
		}
	}
	if err := m.Reboot(); err != nil {
		t.Fatal(err)
	}
	m.Sync()
	checkNICs(t, m)
}

func TestRDMANodes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make device nodes")
	}
	m := simulatortest.New(t, "sriov")
	if err := m.SetVFs("mlx5_1", 32); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]uint32{
		"uverbs0": {231, 192}, "uverbs31": {231, 223}, "uverbs32": {240, 0}, "umad1": {231, 1}, "rdma_cm": {10, 58},
	} {
		var stat unix.Stat_t
		if err := unix.Stat(filepath.Join(m.Root(), "dev/infiniband", name), &stat); err != nil {
			t.Fatal(err)
		}
		if stat.Mode != unix.S_IFCHR|0o666 || unix.Major(stat.Rdev) != want[0] || unix.Minor(stat.Rdev) != want[1] {
			t.Errorf("%s has mode %o and number %d:%d", name, stat.Mode, unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
		}
	}
	entries, err := os.ReadDir(filepath.Join(m.Root(), "dev/infiniband"))
	if err != nil {
		t.Fatal(err)
	}
	verbs := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "uverbs") {
			verbs++
		}
	}
	if verbs != 38 {
		t.Errorf("%d uverbs nodes, want 38", verbs)
	}
	if err := m.SetVFs("mlx5_1", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(m.Root(), "dev/infiniband/uverbs32")); err == nil {
		t.Error("a node outlives its VF")
	}
}

// TestNoNICsLeft: a machine that another replaces leaves no NIC behind.
func TestNoNICsLeft(t *testing.T) {
	m := simulatortest.New(t, "nic-only")
	spec := simulatortest.New(t, "l40s").Spec()
	if _, created, err := simulator.Create(m.Root(), spec); err != nil || !created {
		t.Fatalf("created: %t, %v", created, err)
	}
	if _, err := tree.Sync(m.Machine, tree.Built{}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"sys/class/net", "sys/class/infiniband_verbs", "sys/class/misc", "dev/infiniband", "sys/bus/pci/drivers/mlx5_core"} {
		if left, err := os.ReadDir(filepath.Join(m.Root(), dir)); err == nil && len(left) > 0 {
			t.Errorf("%s still has %v", dir, left)
		}
	}
}
