package simulator_test

import (
	"context"
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

// TestMoveAndReturn: a NIC goes into a Pod and comes back as it was.
func TestMoveAndReturn(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		t.Run(fmt.Sprintf("exclusive=%t", exclusive), func(t *testing.T) {
			m := simulatortest.New(t, "nic-only")
			must(t, m.SetRDMAExclusive(exclusive))
			function := address(t, "0000:31:00.0")
			before := nics(t, m)
			h := home(t, m, function)
			if h.RDMAMoves != exclusive || h.RDMA != "mlx5_0" || len(h.Netdevs) != 1 || len(h.Netdevs[0].Routes) != 1 || len(h.DCB.DSCP) != 1 {
				t.Errorf("its home is %+v", h)
			}
			move := hardware.NICMove{Home: h, Name: "net1", MTU: 4200, Addresses: []string{"192.0.2.7/24"}}
			must(t, m.MoveNIC(move, "pod"))
			must(t, m.MoveNIC(move, "pod")) // of a container that was restarted
			away := nics(t, m)[0]
			if !away.Away || len(away.Netdevs) != 0 || (len(away.RDMA.Ports) == 0) != exclusive {
				t.Errorf("while it is away it is described as %+v", away)
			}
			wantClass(t, failure.Conflict, "its home, read while it is away", second(m.NICs().NICHome(t.Context(), function)))
			wantClass(t, failure.Conflict, "moved into another namespace", m.MoveNIC(move, "other"))
			wantClass(t, failure.Conflict, "DCB set while it is away", second(m.NICs().SetDCB(t.Context(), function, h.DCB)))
			state, err := m.State()
			must(t, err)
			want := simulator.NetdevState{Name: "net1", MAC: h.Netdevs[0].MAC, MTU: 4200, Up: true, Addresses: move.Addresses, Namespace: "pod"}
			if got := state.NICs[0].Netdevs[0]; !reflect.DeepEqual(got, want) || (state.NICs[0].RDMANamespace == "pod") != exclusive {
				t.Errorf("in the Pod it is %+v, RDMA in %q", got, state.NICs[0].RDMANamespace)
			}
			for range 2 {
				must(t, m.NICs().BringHome(t.Context(), h))
				if after := nics(t, m); !reflect.DeepEqual(after, before) {
					t.Errorf("it came back as\n%+v, was\n%+v", after[0], before[0])
				}
			}
		})
	}
}

// TestNamespaceEnds: the kernel takes a NIC back, but not as it was.
func TestNamespaceEnds(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	must(t, m.SetRDMAExclusive(true))
	before := nics(t, m)
	first, other := before[1].Address, before[2].Address
	h, otherHome := home(t, m, first), home(t, m, other)
	must(t, m.MoveNIC(hardware.NICMove{Home: h, Name: "eth7", MTU: 1400}, "pod"))
	must(t, m.MoveNIC(hardware.NICMove{Home: otherHome, Name: "eth8"}, "pod"))
	wantClass(t, failure.Conflict, "two of one name in a namespace", m.MoveNIC(hardware.NICMove{Home: home(t, m, before[3].Address), Name: "eth7"}, "pod"))
	must(t, m.TakeName("eth8"))
	must(t, m.SealNamespace("pod"))
	wantClass(t, failure.Busy, "brought home from a namespace that is ending", m.NICs().BringHome(t.Context(), h))
	must(t, m.EndNamespace("pod"))

	state, err := m.State()
	must(t, err)
	want := simulator.NetdevState{Name: "eth7", MAC: h.Netdevs[0].MAC, MTU: 1400}
	if got := state.NICs[1].Netdevs[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("the kernel took it back as %+v, want %+v", got, want)
	}
	if got := state.NICs[2].Netdevs[0].Name; got != "dev0" {
		t.Errorf("where its name is taken it is called %s", got)
	}
	if dcb := state.NICs[1].DCB; dcb.Trust != machine.TrustPCP || dcb.DSCP != nil || !dcb.PFC[3] {
		t.Errorf("its DCB is %+v", dcb)
	}
	must(t, m.TakeName(h.Netdevs[0].Name))
	wantClass(t, failure.Conflict, "brought home where another has its name", m.NICs().BringHome(t.Context(), h))
	must(t, m.GiveName(h.Netdevs[0].Name))
	must(t, m.NICs().BringHome(t.Context(), h))
	must(t, m.NICs().BringHome(t.Context(), otherHome))
	if after := nics(t, m); !reflect.DeepEqual(after, before) {
		t.Errorf("it came back as\n%+v, was\n%+v", after, before)
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

func TestPullsAndPlugs(t *testing.T) {
	m := simulatortest.New(t, "nic-only")
	before := nics(t, m)
	must(t, m.SetLink("mlx5_0", false))
	n := nics(t, m)[0]
	if n.Health.Reason != machine.FaultLinkDown || n.Netdevs[0].Carrier || !n.Netdevs[0].Up || n.RDMA.Ports[0].State != "DOWN" || n.Netdevs[0].Speed != 0 {
		t.Errorf("without a link it is %+v", n)
	}
	must(t, m.SetLink("enp49s0np0", true))
	h := home(t, m, n.Address)
	must(t, m.MoveNIC(hardware.NICMove{Home: h}, "pod"))
	must(t, m.Unplug(n.Address.String()))
	if after := nics(t, m); len(after) != 1 || after[0].Address != before[1].Address {
		t.Errorf("unplugged: %+v", after)
	}
	wantClass(t, failure.Absent, "brought home", m.NICs().BringHome(t.Context(), h))
	wantClass(t, failure.Absent, "moved", m.MoveNIC(hardware.NICMove{Home: h}, "pod"))
	must(t, m.TakeName("enp49s0np0"))
	must(t, m.Plug("mlx5_0"))
	if after := nics(t, m)[0]; after.Netdevs[0].Name != "eth0" || after.Away {
		t.Errorf("plugged in again: %+v", after)
	}
	wantClass(t, failure.Absent, "no such NIC", m.Unplug("eth0"))
}

func TestNICFailures(t *testing.T) {
	function := machine.Address{Bus: 0x31}
	for kind, class := range map[simulator.FailureKind]error{
		simulator.FailureUnknown: nil, simulator.FailureInUse: failure.Busy,
		simulator.FailureInsufficientResources: failure.Conflict, simulator.FailureLost: failure.Absent,
	} {
		m := simulatortest.New(t, "nic-only")
		h := home(t, m, function)
		for call, do := range map[string]func() error{
			simulator.CallNICHome:   func() error { return second(m.NICs().NICHome(t.Context(), function)) },
			simulator.CallMoveNIC:   func() error { return m.MoveNIC(hardware.NICMove{Home: h}, "pod") },
			simulator.CallBringHome: func() error { return m.NICs().BringHome(t.Context(), h) },
			simulator.CallSetDCB:    func() error { return second(m.NICs().SetDCB(t.Context(), function, h.DCB)) },
			simulator.CallSetVFs:    func() error { return m.NICs().SetVFs(t.Context(), function, 0) },
		} {
			must(t, m.Reboot())
			must(t, m.Fail(function.String(), call, simulator.Failure{Times: 1, Error: kind}))
			before, err := m.State()
			must(t, err)
			if err := do(); err == nil || failure.ClassOf(err) != class {
				t.Errorf("%s %s: %v, want class %v", call, kind, err, class)
			}
			after, err := m.State()
			must(t, err)
			if after.NICs[0].Unplugged != (kind == simulator.FailureLost) || !reflect.DeepEqual(after.NICs[0].FunctionState, before.NICs[0].FunctionState) {
				t.Errorf("%s %s: it became %+v", call, kind, after.NICs[0])
			}
		}
	}
	m := simulatortest.New(t, "nic-only")
	must(t, m.Fail("mlx5_0", simulator.CallDescribeNIC, simulator.Failure{Times: 1, Error: simulator.FailureUnknown}))
	d, err := m.NICs().DescribeNICs(t.Context())
	must(t, err)
	if len(d.NICs) != 1 || len(d.Faults) != 1 || d.Faults[0].Device != function.String() || d.Faults[0].Kind != machine.FaultUnreadable {
		t.Errorf("one that cannot be read: %+v", d)
	}
	if len(nics(t, m)) != 2 {
		t.Error("it fails twice")
	}
}

func TestWatchNICs(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	ctx, stop := context.WithCancel(t.Context())
	seen, ended := make(chan bool, 100), make(chan error, 1)
	go func() { ended <- m.NICs().WatchNICs(ctx, func() { seen <- true }) }()
	link := false
	for done := false; !done; link = !link { // nothing says that it has begun
		must(t, m.SetLink("mlx5_3", link))
		select {
		case <-seen:
			done = true
		default:
		}
	}
	stop()
	must(t, <-ended)
}

// second is the error of a call with two results.
func second[T any](_ T, err error) error { return err }
