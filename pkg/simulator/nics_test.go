package simulator_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func nics(t *testing.T, m *simulatortest.Machine) []machine.NIC {
	t.Helper()
	d, err := m.NICs().DescribeNICs(t.Context())
	must(t, err)
	return d.NICs
}

func home(t *testing.T, m *simulatortest.Machine, function machine.Address) machine.NICHome {
	t.Helper()
	h, err := m.NICs().NICHome(t.Context(), function)
	must(t, err)
	return h
}

func address(t *testing.T, text string) machine.Address {
	t.Helper()
	a, err := machine.ParseAddress(text)
	must(t, err)
	return a
}

func wantClass(t *testing.T, class error, what string, err error) {
	t.Helper()
	if err == nil || !errors.Is(err, class) {
		t.Errorf("%s: %v, want class %v", what, err, class)
	}
}

func TestDescribeNICs(t *testing.T) {
	m := simulatortest.New(t, "nic-only")
	d, err := m.NICs().DescribeNICs(t.Context())
	must(t, err)
	if len(d.NICs) != 2 || len(d.Faults) != 0 || !slices.Equal(d.RDMANodes, []string{"/dev/infiniband/rdma_cm"}) {
		t.Fatalf("described as %+v", d)
	}
	mac := simulator.MAC("nic-only", address(t, "0000:31:00.0"), 0)
	local := fmt.Sprintf("fe80:0000:0000:0000:00%s:%sff:fe%s:%s%s", mac[3:5], mac[6:8], mac[9:11], mac[12:14], mac[15:17])
	gid := func(i int, g, kind string) machine.GID {
		return machine.GID{Index: i, GID: g, Type: kind, Netdev: "enp49s0np0"}
	}
	v4, v6 := "0000:0000:0000:0000:0000:ffff:c612:0001", "fd00:0018:0000:0000:0000:0000:0000:0001"
	want := machine.NIC{
		Address: address(t, "0000:31:00.0"), Vendor: "NVIDIA", Model: "MT4129", Driver: "mlx5_core", FirmwareVersion: "28.39.3004",
		Netdevs: []machine.Netdev{{Name: "enp49s0np0", MAC: mac, MTU: 9000, MaxMTU: 9978, Up: true, Carrier: true, Speed: 400000}},
		RDMA: &machine.RDMADevice{Name: "mlx5_0", Nodes: []string{"/dev/infiniband/uverbs0", "/dev/infiniband/umad0"},
			Ports: []machine.RDMAPort{{Number: 1, LinkLayer: machine.LinkEthernet, State: "ACTIVE", Rate: 400, GIDs: []machine.GID{
				gid(0, local, "IB/RoCE v1"), gid(1, local, "RoCE v2"), gid(2, v4, "IB/RoCE v1"), gid(3, v4, "RoCE v2"),
				gid(4, v6, "IB/RoCE v1"), gid(5, v6, "RoCE v2"),
			}}}},
		DCB: machine.DCB{PFC: [8]bool{3: true}, Trust: machine.TrustDSCP, DSCP: []machine.DSCPPriority{{DSCP: 26, Priority: 3}},
			ETS: &machine.ETS{Class: [8]uint8{1, 0, 2, 3, 4, 5, 6, 7}}},
		Location: machine.Location{PCIeRoot: "pci0000:30", Bridges: []machine.Address{address(t, "0000:30:01.0")}},
	}
	if !reflect.DeepEqual(d.NICs[0], want) {
		t.Errorf("described as\n%+v, want\n%+v", d.NICs[0], want)
	}
}

// TestOddNICs: each is described, and those that must not be given away say why.
func TestOddNICs(t *testing.T) {
	m := simulatortest.New(t, "odd-nics")
	all := nics(t, m)
	if len(all) != len(m.Spec().NICs) {
		t.Fatalf("%d of %d NICs are described", len(all), len(m.Spec().NICs))
	}
	withheld := map[string]bool{}
	for _, n := range all {
		withheld[n.Address.String()] = n.Withheld != ""
	}
	want := map[string]bool{
		"0000:01:00.0": true, "0000:02:00.0": true, "0000:02:00.1": true, "0000:17:00.0": false, "0000:31:00.0": false,
		"0000:32:00.0": false, "0000:33:00.0": false, "0000:34:00.0": true, "0000:35:00.0": true, "0000:36:00.0": true,
		"0000:37:00.0": true, "0000:99:00.0": false, "0000:9a:00.0": false,
	}
	if !reflect.DeepEqual(withheld, want) {
		t.Errorf("withheld are %v, want %v", withheld, want)
	}
	two := all[4]
	if len(two.Netdevs) != 2 || len(two.RDMA.Ports) != 2 || two.RDMA.Ports[1].GIDs[0].Netdev != two.Netdevs[1].Name {
		t.Errorf("two ports are described as %+v", two)
	}
	ib := all[5].RDMA
	if ib == nil || ib.Ports[0].LinkLayer != machine.LinkInfiniBand || ib.Ports[0].State != "ACTIVE" || len(ib.Nodes) != 3 || len(all[5].Netdevs) != 0 {
		t.Errorf("InfiniBand is described as %+v", all[5])
	}
	if down := all[3]; down.Netdevs[0].Up || down.Netdevs[0].Carrier || down.RDMA.Ports[0].State != "DOWN" || !down.Health.OK() {
		t.Errorf("an interface that nobody has brought up is described as %+v", down)
	}
}

func TestEachNICHasItsOwn(t *testing.T) {
	for _, name := range []string{"dgx-h100", "dgx-a100", "dual-rail", "sriov", "odd-nics"} {
		m := simulatortest.New(t, name)
		seen := map[string]string{}
		once := func(what, who string) {
			if other, ok := seen[what]; ok {
				t.Errorf("%s: %s and %s have the same %s", name, other, who, what)
			}
			seen[what] = who
		}
		state, err := m.State()
		must(t, err)
		for _, f := range state.Functions() {
			for _, d := range f.Netdevs {
				once("interface "+d.Name, f.String())
				once("hardware address "+d.MAC, f.String())
			}
			if f.RDMA != "" {
				once("RDMA device "+f.RDMA, f.String())
			}
			for _, node := range f.Nodes() {
				once("node "+node, f.String())
			}
		}
		for _, n := range nics(t, m) {
			if n.RDMA != nil && len(n.RDMA.Ports[0].GIDs) > 0 {
				once("GID "+n.RDMA.Ports[0].GIDs[0].GID, n.Address.String())
			}
		}
	}
}

func TestVFs(t *testing.T) {
	m := simulatortest.New(t, "sriov")
	all := nics(t, m)
	if len(all[0].VFs) != 4 || len(all[1].VFs) != 0 || all[1].MaxVFs != 64 {
		t.Fatalf("there are %+v", all)
	}
	vf := all[0].VFs[3]
	if vf.Address != address(t, "0000:18:00.4") || vf.Netdevs[0].Name != "enp24s0v3" || vf.RDMA.Name != "mlx5_5" || vf.Netdevs[0].Up {
		t.Errorf("a VF is %+v", vf)
	}
	before := nics(t, m)
	h := home(t, m, vf.Address)
	must(t, m.MoveNIC(hardware.NICMove{Home: h, Name: "net1"}, "pod"))
	if after := nics(t, m); !after[0].VFs[3].Away || after[0].Away || after[0].VFs[2].Away {
		t.Errorf("with a VF away there are %+v", after)
	}
	must(t, m.NICs().BringHome(t.Context(), h))
	if after := nics(t, m); !reflect.DeepEqual(before, after) {
		t.Errorf("it came back as %+v", after)
	}

	set := func(nic machine.Address, n int) error { return m.NICs().SetVFs(t.Context(), nic, n) }
	must(t, set(all[0].Address, 4))
	wantClass(t, failure.Conflict, "more beside those that there are", set(all[0].Address, 5))
	wantClass(t, failure.Invalid, "more than there can be", set(all[1].Address, 65))
	wantClass(t, failure.Unsupported, "VFs of a VF", set(vf.Address, 1))
	must(t, set(all[1].Address, 64))
	if got := nics(t, m)[1].VFs; len(got) != 64 || got[63].Address != address(t, "0000:9a:08.0") {
		t.Errorf("64 VFs are %+v", got)
	}
	must(t, set(all[0].Address, 0))
	wantClass(t, failure.Absent, "a VF that has gone", m.NICs().BringHome(t.Context(), h))
	must(t, m.Reboot())
	if after := nics(t, m); !reflect.DeepEqual(before, after) {
		t.Errorf("after a reboot there are %+v", after)
	}
}

func TestDCB(t *testing.T) {
	m := simulatortest.New(t, "odd-nics")
	nic := address(t, "0000:17:00.0")
	want := machine.DCB{PFC: [8]bool{4: true}, Trust: machine.TrustDSCP, DSCP: []machine.DSCPPriority{{DSCP: 46, Priority: 4}}}
	got, err := m.NICs().SetDCB(t.Context(), nic, want)
	must(t, err)
	if want.ETS = got.ETS; !reflect.DeepEqual(got, want) || !reflect.DeepEqual(nics(t, m)[3].DCB, want) || got.ETS == nil {
		t.Errorf("set %+v, it has %+v", want, got)
	}
	got, err = m.NICs().SetDCB(t.Context(), nic, machine.DCB{Trust: machine.TrustPCP})
	must(t, err)
	if got.Trust != machine.TrustPCP || got.DSCP != nil || !got.PFC[4] {
		t.Errorf("back to trust in the VLAN tag it has %+v", got)
	}
	wantClass(t, failure.Unsupported, "InfiniBand", second(m.NICs().SetDCB(t.Context(), address(t, "0000:32:00.0"), want)))
}

// second is the error of a call with two results.
func second[T any](_ T, err error) error { return err }
