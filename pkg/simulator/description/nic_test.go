package description_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/description"
)

func TestNICDefaults(t *testing.T) {
	got, err := description.Parse([]byte(`
name: m
nicModel: connectx-7
dcb: {pfc: [3], trust: dscp, dscp: {48: 6, 26: 3}}
nics:
- {address: 0009:03:00.1, mtu: 9000, rdma: mlx5_0, netdevs: [{addresses: [192.0.2.1/24]}, {mtu: 4200, down: true}]}
- {address: 0000:18:00.0, numaNode: 1, maxVFs: 8, numVFs: 2}
- {address: 0000:19:00.0, linkLayer: InfiniBand}
- {address: 0000:1a:00.0, driver: none}
- {address: 0000:1b:00.0, model: x550, uplink: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	ets := &machine.ETS{Class: [8]uint8{1, 0, 2, 3, 4, 5, 6, 7}}
	lossless := machine.DCB{Trust: machine.TrustDSCP, ETS: ets, PFC: [8]bool{3: true},
		DSCP: []machine.DSCPPriority{{DSCP: 26, Priority: 3}, {DSCP: 48, Priority: 6}}}
	at := func(domain uint32, bus, function uint8) machine.Address {
		return machine.Address{Domain: domain, Bus: bus, Function: function}
	}
	root := []string{"pci0000:00"}
	mac := func(a machine.Address, n int) string { return simulator.MAC("m", a, n) }
	want := []simulator.NICSpec{
		{
			Address: at(0, 0x18, 0), Above: root, NUMANode: 1, Model: "connectx-7", Driver: "mlx5_core", RDMA: "mlx5_1",
			LinkLayer: machine.LinkEthernet, Speed: 400, DCB: lossless, MaxVFs: 8, NumVFs: 2,
			Netdevs: []simulator.NetdevSpec{{Name: "enp24s0np0", MAC: mac(at(0, 0x18, 0), 0), MTU: 1500}},
		},
		{
			Address: at(0, 0x19, 0), Above: root, NUMANode: -1, Model: "connectx-7", Driver: "mlx5_core", RDMA: "mlx5_2",
			LinkLayer: machine.LinkInfiniBand, Speed: 400,
		},
		{Address: at(0, 0x1a, 0), Above: root, NUMANode: -1, Model: "connectx-7", Speed: 400},
		{
			Address: at(0, 0x1b, 0), Above: root, NUMANode: -1, Model: "x550", Driver: "ixgbe", Speed: 10, Uplink: true,
			DCB:     machine.DCB{Trust: machine.TrustPCP, ETS: ets},
			Netdevs: []simulator.NetdevSpec{{Name: "enp27s0", MAC: mac(at(0, 0x1b, 0), 0), MTU: 1500}},
		},
		{
			Address: at(9, 3, 1), Above: []string{"pci0009:00"}, NUMANode: -1, Model: "connectx-7", Driver: "mlx5_core", RDMA: "mlx5_0",
			LinkLayer: machine.LinkEthernet, Speed: 400, DCB: lossless,
			Netdevs: []simulator.NetdevSpec{
				{Name: "enP9p3s0f1np0", MAC: mac(at(9, 3, 1), 0), MTU: 9000, Addresses: []string{"192.0.2.1/24"}},
				{Name: "enP9p3s0f1np1", MAC: mac(at(9, 3, 1), 1), MTU: 4200, Down: true},
			},
		},
	}
	if len(got.NICs) != len(want) || got.Driver != (machine.Driver{}) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if !reflect.DeepEqual(got.NICs[i], want[i]) {
			t.Errorf("NIC %d: got\n%+v, want\n%+v", i, got.NICs[i], want[i])
		}
	}
}

func TestNICErrors(t *testing.T) {
	for nics, want := range map[string]string{
		"{model: x550}":                                                                                `nics[0]: address: PCI address ""`,
		"{address: 0000:18:00.0, model: ne2000}":                                                       `nics[0]: model: NIC model "ne2000" is unknown: use one of bcm57608`,
		"{address: 0000:18:00.0, above: pci0}":                                                         `above: "pci0" does not begin with a root`,
		"{address: 0000:18:00.0, numaNode: -2}":                                                        "numaNode: -2 is out of range",
		"{address: 0000:18:00.0, speed: -1}":                                                           "speed: -1 is negative",
		"{address: 0000:18:00.0, netdevs: [{name: averylongnameforit}]}":                               `netdevs[0]: name: "averylongnameforit" is no interface name: use up to 15`,
		"{address: 0000:18:00.0, netdevs: [{name: a/b}]}":                                              `"a/b" is no interface name`,
		"{address: 0000:18:00.0, netdevs: [{name: ..}]}":                                               `".." is no interface name`,
		"{address: 0000:18:00.0, netdevs: [{mac: '01:00:00:00:00:00'}]}":                               `mac: "01:00:00:00:00:00" is no address of one interface`,
		"{address: 0000:18:00.0, mtu: 65000}":                                                          "mtu: 65000 is out of range: give 68 to 9978, which is as much as model connectx-7 takes",
		"{address: 0000:18:00.0, netdevs: [{addresses: [10.0.0.1]}]}":                                  `addresses: "10.0.0.1" is no address with its prefix`,
		"{address: 0000:18:00.0, netdevs: [{routes: [{to: all}]}]}":                                    `routes[0]: to: "all" is no prefix`,
		"{address: 0000:18:00.0, netdevs: [{routes: [{to: 10.0.0.0/8, via: gw}]}]}":                    `routes[0]: via: "gw" is no address`,
		"{address: 0000:18:00.0, netdevs: [{}, {}, {}]}":                                               "netdevs: 3 of one function: give at most 2",
		"{address: 0000:18:00.0, model: x550, rdma: mlx5_0}":                                           `rdma: "mlx5_0", but model x550 has no RDMA`,
		"{address: 0000:18:00.0, rdma: a b}":                                                           `rdma: "a b" is no device name`,
		"{address: 0000:18:00.0, linkLayer: Token}":                                                    `linkLayer: "Token" is unknown: use Ethernet or InfiniBand`,
		"{address: 0000:18:00.0, model: e810, linkLayer: InfiniBand}":                                  "linkLayer: InfiniBand, but model e810 has Ethernet alone",
		"{address: 0000:18:00.0, model: x550, linkLayer: InfiniBand}":                                  `linkLayer: "InfiniBand", but model x550 has Ethernet alone`,
		"{address: 0000:18:00.0, dcb: {pfc: [8]}}":                                                     "dcb: pfc: priority 8 is out of range: give 0 to 7",
		"{address: 0000:18:00.0, dcb: {trust: me}}":                                                    `dcb: trust: "me" is unknown: use pcp or dscp`,
		"{address: 0000:18:00.0, dcb: {dscp: {26: 3}}}":                                                `dcb: dscp: needs trust: dscp, and trust is "pcp"`,
		"{address: 0000:18:00.0, dcb: {trust: dscp, dscp: {64: 3}}}":                                   "dcb: dscp: 64: 3 is out of range",
		"{address: 0000:18:00.0, netdevs: [], dcb: {pfc: [3]}}":                                        "dcb: needs an Ethernet interface",
		"{address: 0000:18:00.0, maxVFs: 255}":                                                         "maxVFs: 255 is out of range: give 0 to 254",
		"{address: 0000:18:00.0, model: virtio-net, maxVFs: 2}":                                        "maxVFs: 2, but model virtio-net has none",
		"{address: 0000:18:00.0, maxVFs: 2, numVFs: 3}":                                                "numVFs: 3 is out of range: give 0 to 2, which maxVFs says",
		"{address: 0000:18:00.0, driver: vfio-pci, rdma: mlx5_0}":                                      `rdma: needs the driver mlx5_core, and driver is "vfio-pci"`,
		"{address: 0000:18:00.0, driver: none, uplink: true}":                                          "uplink: needs the driver",
		"{address: 0000:18:00.0, netdevs: [], uplink: true}":                                           "uplink or bond: needs a network interface",
		"{address: 0000:18:00.0, bond: a/b}":                                                           `bond: "a/b" is no interface name`,
		"{address: 0000:18:00.0}, {address: 0000:18:00.0}":                                             "have the same address 0000:18:00.0",
		"{address: 0000:18:00.0, maxVFs: 2}, {address: 0000:18:00.1}":                                  "nics: 0000:18:00.0 (its VF 0) and nics: 0000:18:00.1 have the same address 0000:18:00.1",
		"{address: 0000:18:00.0, rdma: r0}, {address: 0000:19:00.0, rdma: r0}":                         "have the same rdma r0",
		"{address: 0000:18:00.0, netdevs: [{name: e}]}, {address: 0000:19:00.0, netdevs: [{name: e}]}": "have the same netdevs name e",
		"{address: 0000:18:00.0, netdevs: [{mac: '02:00:00:00:00:01'}]}, {address: 0000:19:00.0, netdevs: [{mac: '02:00:00:00:00:01'}]}": "have the same netdevs mac 02:00:00:00:00:01",
		"{address: 0000:18:00.0}, {address: 0000:19:00.0, above: 'pci0000:00/0000:18:00.0'}":                                             "nics: 0000:18:00.0 is a device and a port above another one",
		"{address: 0000:1b:00.0, above: 'pci0000:1a/0000:1a:00.0'}, {address: 0000:1c:00.0, above: 'pci0000:1f/0000:1a:00.0'}":           "port 0000:1a:00.0 is below both",
	} {
		_, err := description.Parse([]byte("name: m\nnicModel: connectx-7\nnics: [" + nics + "]\n"))
		if !errors.Is(err, failure.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", nics, err, want)
		}
	}
	_, err := description.Parse([]byte(head + "nicModel: e810\nnics: [{address: 0000:18:00.0}]\n"))
	if !errors.Is(err, failure.Invalid) || !strings.Contains(err.Error(), `driver: version "550.163.01", CUDA "12.4", but there are no gpus: leave it out`) {
		t.Errorf("a driver without GPUs: %v", err)
	}
	_, err = description.Parse([]byte(head + "model: t4\ngpus: [{address: 0000:18:00.0}]\nnics: [{address: 0000:18:00.0, model: e810}]\n"))
	if !errors.Is(err, failure.Invalid) || !strings.Contains(err.Error(), "gpus: 0000:18:00.0 and nics: 0000:18:00.0 have the same address") {
		t.Errorf("a GPU and a NIC in one place: %v", err)
	}
}
