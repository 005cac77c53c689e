package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// withNICs has, beside two GPUs, the one's NIC (1a), one that both GPUs share (2a) by
// the administrator's word, one with two virtual functions (3a), and one for InfiniBand
// alone (4a).
func withNICs() *machine.Machine {
	m := twoGPUs()
	at := func(bus uint8) machine.Location {
		return machine.Location{PCIeRoot: "pci0000:" + string("0123456789abcdef"[bus>>4]) + "0", NUMANode: -1}
	}
	roce := func(bus uint8, name string) machine.NIC {
		return machine.NIC{
			Address: machine.Address{Bus: bus}, Location: at(bus),
			Netdevs: []machine.Netdev{{Name: "eth" + name, MAC: "b8:3f:d2:00:00:0" + name, MTU: 1500, MaxMTU: 9978, Up: true, Carrier: true, Speed: 400000}},
			RDMA: &machine.RDMADevice{Name: "mlx5_" + name, Nodes: []string{"/dev/infiniband/uverbs" + name}, Ports: []machine.RDMAPort{{
				Number: 1, State: machine.PortActive,
				GIDs: []machine.GID{
					{Index: 2, GID: "0000:0000:0000:0000:0000:ffff:0a00:0001", Type: "IB/RoCE v1"},
					{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:0a00:0001", Type: "RoCE v2"},
				},
			}}},
			DCB: machine.DCB{PFC: [8]bool{3: true}, Trust: machine.TrustDSCP, DSCP: []machine.DSCPPriority{{DSCP: 26, Priority: 3}}},
		}
	}
	m.RDMANodes = []string{"/dev/infiniband/rdma_cm"}
	m.NICs = []machine.NIC{roce(0x1a, "0"), roce(0x2a, "1"), roce(0x3a, "2"), roce(0x4a, "3")}
	m.NICs[2].VFs = []machine.VF{
		{Index: 0, Address: machine.Address{Bus: 0x3a, Function: 1}, RDMA: &machine.RDMADevice{Name: "mlx5_4"}, Netdevs: []machine.Netdev{{Name: "eth2v0"}}},
		{Index: 1, Address: machine.Address{Bus: 0x3a, Function: 2}, RDMA: &machine.RDMADevice{Name: "mlx5_5"}, Netdevs: []machine.Netdev{{Name: "eth2v1"}}},
	}
	m.NICs[3].Netdevs = nil
	m.NICs[3].DCB = machine.DCB{}
	m.Network.Pairs = []machine.DeclaredPair{
		{GPU: m.GPUs[0].Address, NIC: m.NICs[0].Address}, {GPU: m.GPUs[0].Address, NIC: m.NICs[1].Address},
		{GPU: m.GPUs[1].Address, NIC: m.NICs[1].Address}, {GPU: m.GPUs[1].Address, NIC: m.NICs[2].Address},
	}
	return m
}

func TestNICs(t *testing.T) {
	for name, test := range map[string]struct {
		results  []Result
		holds    []string
		joins    map[string]string
		locks    []string
		reserved []string // by steps
		moves    []bool   // of each device
	}{
		"a NIC": {
			[]Result{{Request: "r", Device: "nic-1a-00"}},
			[]string{"nic-1a-00"}, nil, []string{"nic-1a-00"}, []string{"nic-1a-00"}, []bool{true},
		},
		"a NIC that stays": {
			[]Result{{Request: "r", Device: "nic-1a-00", Config: Config{NIC: NICConfig{KeepHost: true}}}},
			[]string{"nic-1a-00"}, nil, []string{"nic-1a-00"}, nil, []bool{false},
		},
		"RDMA alone, twice": {
			[]Result{{Request: "r", Device: "rdma-1a-00", ShareID: "1"}, {Request: "s", Device: "rdma-1a-00", ShareID: "2"}},
			nil, map[string]string{"nic-1a-00": "rdma-1a-00"}, []string{"nic-1a-00", "nic-1a-00"}, nil, []bool{false, false},
		},
		"a VF": {
			[]Result{{Request: "r", Device: "vf-3a-00-1"}},
			[]string{"vf-3a-00-1"}, map[string]string{"nic-3a-00": "vfs"}, []string{"vf-3a-00-1"}, []string{"vf-3a-00-1"}, []bool{true},
		},
		"pairs: one has its NIC alone, one a lane, one a VF": {
			[]Result{{Request: "r", Device: "pair-1b-00-1a-00"}, {Request: "r", Device: "pair-43-00-2a-00"}},
			[]string{"gpu-1b-00", "nic-1a-00", "gpu-43-00"}, map[string]string{"nic-2a-00": "lanes"},
			[]string{"gpu-1b-00", "nic-1a-00", "gpu-43-00", "nic-2a-00"}, []string{"nic-1a-00"}, []bool{true, false},
		},
		"a pair with a VF": {
			[]Result{{Request: "r", Device: "pair-43-00-3a-00"}},
			[]string{"gpu-43-00", "vf-3a-00-0"}, map[string]string{"nic-3a-00": "vfs"},
			[]string{"gpu-43-00", "vf-3a-00-0"}, []string{"vf-3a-00-0"}, []bool{true},
		},
		"InfiniBand: its RDMA device may have to move": {
			[]Result{{Request: "r", Device: "nic-4a-00"}},
			[]string{"nic-4a-00"}, nil, []string{"nic-4a-00"}, []string{"nic-4a-00"}, []bool{false},
		},
		"admin access takes nothing": {
			[]Result{{Request: "r", Device: "nic-1a-00", AdminAccess: true}}, nil, nil, nil, nil, []bool{false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Prepare(Allocation{Results: test.results}, withNICs())
			if err != nil {
				t.Fatal(err)
			}
			var reserved []string
			for _, s := range p.Steps {
				if s.Kind == ReserveNIC {
					reserved = append(reserved, s.Device)
				}
			}
			var moves []bool
			for _, d := range p.Devices {
				moves = append(moves, d.NIC.Interface != nil)
			}
			if !slices.Equal(p.Holds, test.holds) || !maps.Equal(p.Joins, test.joins) || !slices.Equal(p.Locks, test.locks) ||
				!slices.Equal(reserved, test.reserved) || !slices.Equal(moves, test.moves) {
				t.Errorf("holds %q, joins %q, locks %q, reserved %q, moves %v", p.Holds, p.Joins, p.Locks, reserved, moves)
			}
		})
	}
}

// What is on record must be enough to describe the NIC when it can no longer be seen.
func TestPreparedNIC(t *testing.T) {
	m := withNICs()
	index, class := 3, 104
	for name, test := range map[string]struct {
		device string
		config NICConfig
		want   NIC
	}{
		"as the host has it": {"nic-1a-00", NICConfig{}, NIC{
			Name: "nic-1a-00", Function: machine.Address{Bus: 0x1a}, RDMA: "mlx5_0", Nodes: []string{"/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"},
			Netdev: &m.NICs[0].Netdevs[0], Reserved: true, Interface: &Interface{}, Lossless: true, PFC: []int{3},
		}},
		"as it is configured": {"nic-1a-00", NICConfig{
			InterfaceName: "net1", MTU: 9000, Addresses: []string{"10.0.0.1/8"}, Routes: []machine.Route{{To: "172.16.0.0/12", Via: "10.0.0.2"}}, TrafficClass: &class, Lossless: true,
		}, NIC{
			Name: "nic-1a-00", Function: machine.Address{Bus: 0x1a}, RDMA: "mlx5_0", Nodes: []string{"/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"},
			Netdev: &m.NICs[0].Netdevs[0], Reserved: true, Lossless: true, PFC: []int{3}, TrafficClass: &class,
			Interface: &Interface{Name: "net1", MTU: 9000, Addresses: []string{"10.0.0.1/8"}, Routes: []machine.Route{{To: "172.16.0.0/12", Via: "10.0.0.2"}}},
		}},
		"a lane": {"pair-43-00-2a-00", NICConfig{}, NIC{
			Name: "nic-2a-00", Function: machine.Address{Bus: 0x2a}, RDMA: "mlx5_1", Nodes: []string{"/dev/infiniband/uverbs1", "/dev/infiniband/rdma_cm"},
			Netdev: &m.NICs[1].Netdevs[0], GIDIndex: &index, Lossless: true, PFC: []int{3}, Closeness: machine.ClosenessDeclared, Rail: 1, Topology: true,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Prepare(Allocation{Results: []Result{{Request: "r", Device: test.device, Config: Config{NIC: test.config}}}}, m)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Devices[0].NIC; !reflect.DeepEqual(got, &test.want) {
				t.Errorf("got\n%+v, want\n%+v", got, &test.want)
			}
		})
	}
	p, err := Prepare(Allocation{Results: []Result{{Request: "r", Device: "vf-3a-00-1"}}}, m)
	if err != nil {
		t.Fatal(err)
	}
	want := m.NICs[2]
	want.VFs = want.VFs[1:]
	if got := p.Steps[0].Reserved; !reflect.DeepEqual(got, &machine.Reserved{Function: want.VFs[0].Address, NIC: want}) {
		t.Errorf("reserved %+v", got)
	}
}

func TestNICsRefused(t *testing.T) {
	class := 104
	change := func(change func(*machine.Machine)) *machine.Machine {
		m := withNICs()
		change(m)
		return m
	}
	one := func(device string, c NICConfig) []Result {
		return []Result{{Request: "r", Device: device, Config: Config{NIC: c}}}
	}
	two := func(first, second string, c NICConfig) []Result { return append(one(first, c), one(second, c)...) }
	for name, test := range map[string]struct {
		machine *machine.Machine
		results []Result
		class   error
		words   []string
	}{
		"a NIC that went": {change(func(m *machine.Machine) {
			m.NICs[0].Health = machine.Health{Reason: machine.FaultLost, Message: "it is gone"}
		}), one("nic-1a-00", NICConfig{}), failure.Absent, []string{"request r", "nic-1a-00", "it is gone", "delete the Pod"}},
		"a NIC that others took": {change(func(m *machine.Machine) {
			m.NICs[0].Health = machine.Health{Reason: machine.FaultTaken, Message: "it is elsewhere"}
		}), one("pair-1b-00-1a-00", NICConfig{}), failure.Busy, []string{"it is elsewhere"}},
		"a pair whose GPU is sick": {change(func(m *machine.Machine) {
			m.GPUs[0].Health = machine.Health{Reason: machine.FaultResetRequired, Message: "reset it"}
		}), one("pair-1b-00-1a-00", NICConfig{}), failure.Busy, []string{"reset it"}},
		"no link, tolerated": {change(func(m *machine.Machine) {
			m.NICs[0].Health = machine.Health{Reason: machine.FaultLinkDown, Message: "down"}
		}), one("nic-1a-00", NICConfig{}), nil, nil},
		"not offered any more": {change(func(m *machine.Machine) { m.NICs[0].Withheld = "it has the default route" }),
			one("nic-1a-00", NICConfig{}), failure.Absent, []string{"nic-1a-00 is not on this node"}},
		"MTU beyond the NIC's": {withNICs(), one("nic-1a-00", NICConfig{MTU: 9979}), failure.Invalid, []string{"mtu: 9979", "eth0", "the nearest is 9978"}},
		"the NIC's MTU":        {withNICs(), one("nic-1a-00", NICConfig{MTU: 9978}), nil, nil},
		"a name for what stays": {withNICs(), one("rdma-1a-00", NICConfig{InterfaceName: "net1"}), failure.Invalid,
			[]string{"interfaceName: net1", "stays with the host", "claim nic.dovetail.dev"}},
		"addresses for a lane": {withNICs(), one("pair-43-00-2a-00", NICConfig{Addresses: []string{"10.0.0.1/8"}}), failure.Invalid,
			[]string{"addresses: 10.0.0.1/8", "stays with the host"}},
		"an MTU for InfiniBand": {withNICs(), one("nic-4a-00", NICConfig{MTU: 4092}), failure.Invalid, []string{"mtu: 4092", "no network interface"}},
		"routes for what stays": {withNICs(), one("rdma-1a-00", NICConfig{Routes: []machine.Route{{To: "10.0.0.0/8"}}}), failure.Invalid, []string{"routes: to 10.0.0.0/8"}},
		"one name for two": {withNICs(), two("nic-1a-00", "nic-2a-00", NICConfig{InterfaceName: "net1"}), failure.Invalid,
			[]string{"interfaceName: net1", "several devices"}},
		"another's name": {withNICs(), append(one("nic-1a-00", NICConfig{InterfaceName: "eth1"}), one("nic-2a-00", NICConfig{})...), failure.Invalid,
			[]string{"interfaceName: eth1"}},
		"one address for two": {withNICs(), two("nic-1a-00", "nic-2a-00", NICConfig{Addresses: []string{"10.0.0.1/8"}}), failure.Invalid,
			[]string{"addresses: 10.0.0.1/8"}},
		"one address with two prefixes": {withNICs(), append(one("nic-1a-00", NICConfig{Addresses: []string{"10.0.0.1/8"}}), one("nic-2a-00", NICConfig{Addresses: []string{"10.0.0.1/16"}})...), failure.Invalid,
			[]string{"addresses: 10.0.0.1/16"}},
		"lossless":                {withNICs(), one("nic-1a-00", NICConfig{Lossless: true, TrafficClass: &class}), nil, nil},
		"lossless, any":           {withNICs(), one("rdma-1a-00", NICConfig{Lossless: true}), nil, nil},
		"lossless, a VF":          {withNICs(), one("vf-3a-00-0", NICConfig{Lossless: true, TrafficClass: &class}), nil, nil},
		"lossless, on InfiniBand": {withNICs(), one("nic-4a-00", NICConfig{Lossless: true}), failure.Conflict, []string{"requireLossless: true", "nic-4a-00", "for no priority"}},
		"lossless, another class": {withNICs(), one("nic-1a-00", NICConfig{Lossless: true, TrafficClass: new(int)}), failure.Conflict,
			[]string{"requireLossless", "DSCP 0", "priority 0"}},
		"lossless, by the VLAN tag": {change(func(m *machine.Machine) { m.NICs[0].DCB.Trust = machine.TrustPCP }),
			one("nic-1a-00", NICConfig{Lossless: true, TrafficClass: &class}), failure.Conflict, []string{"trust pcp", "traffic class 104"}},
		"a GPU and its pair": {withNICs(), []Result{{Request: "r", Device: "gpu-1b-00"}, {Request: "s", Device: "pair-1b-00-1a-00"}}, failure.Conflict, []string{"gpu-1b-00 is allocated twice"}},
		"a NIC and its RDMA device": {withNICs(), []Result{{Request: "r", Device: "rdma-1a-00"}, {Request: "s", Device: "nic-1a-00"}}, failure.Conflict,
			[]string{"request s", "nic-1a-00 is allocated twice"}},
		"a lane and the RDMA device": {withNICs(), []Result{{Request: "r", Device: "rdma-2a-00"}, {Request: "s", Device: "pair-43-00-2a-00"}}, failure.Conflict,
			[]string{"in different ways"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Prepare(Allocation{Results: test.results}, test.machine)
			if failure.ClassOf(err) != test.class || (err != nil) != (test.class != nil) {
				t.Fatalf("error %v", err)
			}
			for _, word := range test.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is not in %q", word, err)
				}
			}
		})
	}
}
