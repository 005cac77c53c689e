package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/pci"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// TestDescribe: all NICs with all that there is to say of them.
func TestDescribe(t *testing.T) {
	settled(t, topology.NICs...)
	found, d := describe(t, newAdapter(t))
	if want := []string{"/dev/infiniband/rdma_cm"}; !slices.Equal(d.RDMANodes, want) {
		t.Errorf("the node's own device nodes are %v, want %v", d.RDMANodes, want)
	}
	for _, n := range topology.NICs {
		nic := found[n.Name]
		if nic == nil {
			t.Errorf("%s is not there", n.Name)
			continue
		}
		checkFunction(t, n, nic)
		checkRDMA(t, n, nic)
	}
	if nic := found[topology.Uplink.Name]; !strings.Contains(nic.Withheld, "the default route goes through uplink") {
		t.Errorf("the uplink is withheld because: %q", nic.Withheld)
	}
}

func checkFunction(t *testing.T, n topology.NIC, nic *machine.NIC) {
	t.Helper()
	maxVFs := map[topology.Model]int{topology.IGB: 7}[n.Model]
	vendor := map[topology.Model]string{topology.IGB: "Intel", topology.VMXNET3: "15ad", topology.E1000E: "Intel"}[n.Model]
	if nic.Vendor != vendor || nic.Driver != string(n.Model) || nic.MaxVFs != maxVFs || len(nic.VFs) != 0 || nic.Away || nic.Health != (machine.Health{}) {
		t.Errorf("%s: %+v", n.Name, nic)
	}
	if want := pci.Locate("/sys", nic.Address); nic.Location.PCIeRoot == "" || !slices.Equal(nic.Location.Bridges, want.Bridges) {
		t.Errorf("%s is at %+v", n.Name, nic.Location)
	}
	if len(nic.Netdevs) != 1 {
		t.Errorf("%s has interfaces %+v", n.Name, nic.Netdevs)
		return
	}
	is := nic.Netdevs[0]
	if is.MaxMTU < 9000 {
		t.Errorf("%s takes an MTU of %d at most", n.Name, is.MaxMTU)
	}
	is.MaxMTU = 0
	if want := (machine.Netdev{Name: n.Name, MAC: n.MAC, MTU: 1500, Up: true, Carrier: true, Speed: 1000}); is != want {
		t.Errorf("%s is %+v, want %+v", n.Name, is, want)
	}
}

func checkRDMA(t *testing.T, n topology.NIC, nic *machine.NIC) {
	t.Helper()
	if n.RDMA == "" {
		if nic.RDMA != nil {
			t.Errorf("%s has %+v", n.Name, nic.RDMA)
		}
		return
	}
	if nic.RDMA == nil || nic.RDMA.Name != n.RDMA || len(nic.RDMA.Ports) != 1 || nic.Model != "MT4129" || nic.FirmwareVersion != "28.43.1014" || nic.Withheld != "" {
		t.Errorf("%s: %+v with %+v", n.Name, nic, nic.RDMA)
		return
	}
	if want := []string{nodeOf(t, n.RDMA)}; !slices.Equal(nic.RDMA.Nodes, want) {
		t.Errorf("%s has nodes %v, want %v", n.Name, nic.RDMA.Nodes, want)
	}
	port := nic.RDMA.Ports[0]
	if port.Number != 1 || port.LinkLayer != machine.LinkEthernet || port.State != "ACTIVE" || port.Rate != 400 {
		t.Errorf("%s: port %+v", n.Name, port)
	}
	for _, kind := range []string{"IB/RoCE v1", "RoCE v2"} {
		if !slices.ContainsFunc(port.GIDs, func(g machine.GID) bool { return g.GID == gidOf(n) && g.Type == kind && g.Netdev == n.Name }) {
			t.Errorf("%s has no GID %s of %s: %+v", n.Name, gidOf(n), kind, port.GIDs)
		}
	}
}

// TestDescribeOdd: NICs in all states that NICs are found in. Each says why it is not
// offered, and none keeps the others from being described.
func TestDescribeOdd(t *testing.T) {
	for name, odd := range map[string]struct {
		make func(t *testing.T)
		nic  topology.NIC
		why  string
	}{
		"no driver":       {func(t *testing.T) { bind(t, topology.Below, "") }, topology.Below, "no driver is bound"},
		"another driver":  {func(t *testing.T) { bind(t, topology.Below, "pci-stub") }, topology.Below, "pci-stub"},
		"no RDMA device":  {func(t *testing.T) { must(t, netlink.RdmaLinkDel(topology.Below.RDMA)) }, topology.Below, "Ethernet only"},
		"part of a bond":  {func(t *testing.T) { bond(t, topology.Below) }, topology.Below, "part of bond9"},
		"below an uplink": {func(t *testing.T) { route(t, vlan(t, topology.Below)) }, topology.Below, "the default route goes through vlan9, which below belongs to"},
		"uplink's table":  {func(t *testing.T) { ruledRoute(t, topology.Below.Name) }, topology.Below, "the default route goes through below"},
	} {
		t.Run(name, func(t *testing.T) {
			disturbs(t, topology.Below)
			odd.make(t)
			found, _ := describe(t, newAdapter(t))
			for _, n := range topology.NICs {
				nic := found[n.Name]
				switch {
				case nic == nil:
					t.Errorf("%s is not there", n.Name)
				case n == odd.nic && !strings.Contains(nic.Withheld, odd.why):
					t.Errorf("%s is withheld because %q, want %q", n.Name, nic.Withheld, odd.why)
				case n != odd.nic && n != topology.Uplink && nic.Withheld != "":
					t.Errorf("%s is withheld, too: %s", n.Name, nic.Withheld)
				}
			}
		})
	}
}

// bind gives a NIC another driver, or none, until the test ends.
func bind(t *testing.T, n topology.NIC, driver string) {
	t.Helper()
	address := addresses[n.Name].String()
	const devices, drivers = "/sys/bus/pci/devices", "/sys/bus/pci/drivers"
	t.Cleanup(func() {
		if driver != "" {
			write(t, address, drivers, driver, "unbind")
		}
		write(t, "\n", devices, address, "driver_override")
		write(t, address, "/sys/bus/pci/drivers_probe")
	})
	write(t, address, devices, address, "driver/unbind")
	if driver != "" {
		write(t, driver, devices, address, "driver_override")
		write(t, address, "/sys/bus/pci/drivers_probe")
	}
	if err := absent(filepath.Join("/sys/class/net", n.Name)); err != nil {
		t.Fatal(err)
	}
}

// added makes an interface that is deleted when the test ends.
func added(t *testing.T, l netlink.Link) netlink.Link {
	t.Helper()
	must(t, netlink.LinkAdd(l))
	t.Cleanup(func() { must(t, netlink.LinkDel(l)) })
	return link(t, l.Attrs().Name)
}

func bond(t *testing.T, n topology.NIC) {
	t.Helper()
	made := netlink.NewLinkBond(netlink.LinkAttrs{Name: "bond9"})
	made.Mode = netlink.BOND_MODE_ACTIVE_BACKUP
	master := added(t, made)
	slave := link(t, n.Name)
	must(t, netlink.LinkSetDown(slave))
	must(t, netlink.LinkSetMaster(slave, master))
}

func vlan(t *testing.T, n topology.NIC) netlink.Link {
	t.Helper()
	l := added(t, &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "vlan9", ParentIndex: link(t, n.Name).Attrs().Index}, VlanId: 9})
	must(t, netlink.LinkSetUp(l))
	return l
}

// route leads all traffic through l, as a last choice.
func route(t *testing.T, l netlink.Link) {
	t.Helper()
	all, err := netlink.ParseIPNet("0.0.0.0/0")
	must(t, err)
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: all, Priority: 4000, Scope: netlink.SCOPE_LINK}))
}

// ruledRoute does the same in a table of its own, which a rule leads to.
func ruledRoute(t *testing.T, name string) {
	t.Helper()
	const table = 99
	all, err := netlink.ParseIPNet("0.0.0.0/0")
	must(t, err)
	r := &netlink.Route{LinkIndex: link(t, name).Attrs().Index, Dst: all, Table: table, Scope: netlink.SCOPE_LINK}
	must(t, netlink.RouteAdd(r))
	t.Cleanup(func() { must(t, netlink.RouteDel(r)) })
	rule := netlink.NewRule()
	rule.Table, rule.Priority = table, 1000
	must(t, netlink.RuleAdd(rule))
	t.Cleanup(func() { must(t, netlink.RuleDel(rule)) })
}

// TestDescribeAway: a NIC that a Pod has is still there, and said to be away.
func TestDescribeAway(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode string) {
		mine := lend(t)
		p := newPod(t)
		p.take(t, mine, mode)
		found, _ := describe(t, newAdapter(t))
		for _, n := range topology.NICs {
			if nic := found[n.Name]; nic == nil || nic.Away != (n == mine) {
				t.Errorf("%s: %+v", n.Name, nic)
			}
		}
	})
}

// TestSetVFs: virtual functions are made, described and removed.
func TestSetVFs(t *testing.T) {
	nics, at := newAdapter(t), addresses[topology.Near.Name]
	t.Cleanup(func() { write(t, "0", "/sys/bus/pci/devices", at.String(), "sriov_numvfs") })
	must(t, nics.SetVFs(t.Context(), at, 2))
	must(t, nics.SetVFs(t.Context(), at, 2))
	checkError(t, nics.SetVFs(t.Context(), at, 3), failure.Conflict)
	eventually(t, func() error { return haveNetdevs(at, 2) })

	found, _ := describe(t, nics)
	vfs := found[topology.Near.Name].VFs
	if len(vfs) != 2 {
		t.Fatalf("there are %+v", vfs)
	}
	must(t, netlink.RdmaLinkAdd("mlx5_9", "fakeroce", vfs[1].Netdevs[0].Name))
	found, _ = describe(t, nics)
	vfs = found[topology.Near.Name].VFs
	for i, vf := range vfs {
		if vf.Index != i || vf.Driver != "igbvf" || len(vf.Netdevs) != 1 || vf.Away || (vf.RDMA != nil) != (i == 1) || (vf.Withheld == "") != (i == 1) {
			t.Errorf("VF %d: %+v", i, vf)
		}
	}
	if vfs[1].RDMA != nil && vfs[1].RDMA.Name != "mlx5_9" {
		t.Errorf("VF 1 has RDMA device %+v", vfs[1].RDMA)
	}

	must(t, nics.SetVFs(t.Context(), at, 0))
	must(t, nics.SetVFs(t.Context(), at, 0))
	if found, _ = describe(t, nics); len(found[topology.Near.Name].VFs) != 0 {
		t.Errorf("there still are %+v", found[topology.Near.Name].VFs)
	}
	if err := absent("/sys/class/infiniband/mlx5_9"); err != nil {
		t.Error(err)
	}
	checkError(t, nics.SetVFs(t.Context(), at, 8), failure.Invalid)
	checkError(t, nics.SetVFs(t.Context(), addresses[topology.Uplink.Name], 1), failure.Unsupported)
	checkError(t, nics.SetVFs(t.Context(), machine.Address{Bus: 0xee}, 1), failure.Absent)
}

func haveNetdevs(nic machine.Address, vfs int) error {
	for i := range vfs {
		found, err := os.ReadDir(filepath.Join("/sys/bus/pci/devices", nic.String(), fmt.Sprint("virtfn", i), "net"))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("VF %d has interfaces %v, %w", i, found, err)
		}
	}
	return nil
}

// TestDescribeRemoved: a NIC that is taken out is not described, and when it is back
// it is.
func TestDescribeRemoved(t *testing.T) {
	settled(t, topology.NICs...)
	nics := newAdapter(t)
	var mine topology.NIC
	t.Run("out", func(t *testing.T) {
		mine = lend(t)
		remove(t, mine)
		found, _ := describe(t, nics)
		if len(found) != len(topology.NICs)-1 || found[mine.Name] != nil {
			t.Errorf("there are %d, with %+v", len(found), found[mine.Name])
		}
		_, err := nics.NICHome(t.Context(), addresses[mine.Name])
		checkError(t, err, failure.Absent)
		checkError(t, nics.BringHome(t.Context(), machine.NICHome{Address: addresses[mine.Name]}), failure.Absent)
	})
	found, _ := describe(t, nics)
	if nic := found[mine.Name]; nic == nil || nic.RDMA == nil {
		t.Errorf("it is back as %+v", nic)
	}
}
