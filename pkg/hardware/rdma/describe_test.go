package rdma_test

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func (w *world) describe() hardware.NICDescription {
	w.t.Helper()
	d, err := w.nics.DescribeNICs(w.t.Context())
	must(w.t, err)
	return d
}

// one describes a machine with one NIC and without a fault.
func (w *world) one() machine.NIC {
	w.t.Helper()
	d := w.describe()
	if len(d.NICs) != 1 || len(d.Faults) != 0 {
		w.t.Fatalf("%+v", d)
	}
	return d.NICs[0]
}

const first = "0000:1a:00.0"

func TestDescribe(t *testing.T) {
	w := newWorld(t)
	w.both(first, "eth1", "mlx5_0", 1)
	want := machine.NIC{
		Address: at(t, first), Vendor: "NVIDIA", Model: "MT4129", Driver: "mlx5_core", FirmwareVersion: "28.39.1002", MaxVFs: 16,
		Netdevs: []machine.Netdev{{Name: "eth1", MAC: macOf(1), MTU: 4200, MaxMTU: 9978, Up: true, Carrier: true, Speed: 400000}},
		RDMA: &machine.RDMADevice{
			Name: "mlx5_0", Nodes: []string{"/dev/infiniband/uverbs1", "/dev/infiniband/umad1"},
			Ports: []machine.RDMAPort{{
				Number: 1, LinkLayer: machine.LinkEthernet, State: "ACTIVE", Rate: 400,
				GIDs: []machine.GID{
					{Index: 0, GID: "fe80:0000:0000:0000:ba3f:d2ff:fe00:0001", Type: "RoCE v2", Netdev: "eth1"},
					{Index: 2, GID: "0000:0000:0000:0000:0000:ffff:0a01:0001", Type: "RoCE v2", Netdev: "eth1"},
				},
			}},
		},
		DCB:      lossless(),
		Location: machine.Location{PCIeRoot: "pci0000:10", Bridges: []machine.Address{at(t, "0000:10:01.0")}},
	}
	if got := w.one(); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if d := w.describe(); !reflect.DeepEqual(d.RDMANodes, []string{"/dev/infiniband/rdma_cm"}) {
		t.Errorf("common nodes %q", d.RDMANodes)
	}
}

// TestOddities: each is in one machine with a NIC that nothing is wrong with, which is
// offered in any case.
func TestOddities(t *testing.T) {
	const odd = "0000:2a:00.0"
	tests := []struct {
		name     string
		make     func(w *world)
		withheld string // part of it; empty: offered
		check    func(n machine.NIC) bool
	}{
		{"no driver", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2).without("driver", "net", "infiniband", "infiniband_verbs", "infiniband_mad"))
		}, "no driver", func(n machine.NIC) bool { return n.RDMA == nil && !n.Away && n.Model == "15b3:1021" }},
		// The link to the driver goes first, and what the driver made one after the other.
		{"driver that is being unloaded", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2).without("driver"))
		}, "no driver", func(n machine.NIC) bool { return n.RDMA == nil && !n.Away && n.Health.OK() }},
		{"driver that is being unloaded, without an interface", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2).without("driver", "net"))
		}, "no driver", func(n machine.NIC) bool { return n.RDMA == nil && !n.Away && n.Health.OK() }},
		{"driver that is all but unloaded", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2).without("driver", "net", "infiniband"))
		}, "no driver", func(n machine.NIC) bool { return n.RDMA == nil && !n.Away && n.Health.OK() }},
		{"vfio", func(w *world) {
			f := roce("eth2", "mlx5_1", 2).without("driver", "net", "infiniband", "infiniband_verbs", "infiniband_mad")
			f["driver"] = "->../../bus/pci/drivers/vfio-pci"
			w.add(odd, f)
		}, "vfio-pci is bound", func(n machine.NIC) bool { return n.Driver == "vfio-pci" }},
		{"Ethernet only", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2).without("infiniband", "infiniband_verbs", "infiniband_mad"))
			w.link("eth2", odd, 2)
		}, "Ethernet only", func(n machine.NIC) bool { return len(n.Netdevs) == 1 }},
		{"virtio", func(w *world) {
			f := files{"class": "0x020000", "vendor": "0x1af4", "device": "0x1041", "driver": "->../../bus/pci/drivers/virtio-pci"}
			f["virtio3/net/eth2/speed"] = "-1"
			w.add(odd, f)
			w.link("eth2", "virtio3", 2)
		}, "Ethernet only", func(n machine.NIC) bool { return len(n.Netdevs) == 1 && n.Netdevs[0].Speed == 0 }},
		{"InfiniBand without an interface", func(w *world) {
			f := roce("eth2", "mlx5_1", 2).without("net", "infiniband")
			f["class"] = "0x020700"
			f.withRDMA("mlx5_1", 2, "InfiniBand")
			w.add(odd, f)
		}, "", func(n machine.NIC) bool {
			return !n.Away && n.Health.OK() && n.RDMA.Ports[0].LinkLayer == machine.LinkInfiniBand
		}},
		{"InfiniBand without a link", func(w *world) {
			f := roce("eth2", "mlx5_1", 2).without("net", "infiniband")
			f.withRDMA("mlx5_1", 2, "InfiniBand")
			f["infiniband/mlx5_1/ports/1/state"] = "1: DOWN"
			w.add(odd, f)
		}, "", func(n machine.NIC) bool { return n.Health.Reason == machine.FaultLinkDown && n.Health.Message != "" }},
		{"RoCE that is away", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2).without("net"))
		}, "", func(n machine.NIC) bool { return n.Away && n.Health.OK() && n.RDMA.Name == "mlx5_1" }},
		{"RoCE that is away with its RDMA device", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2).without("net", "infiniband"))
		}, "", func(n machine.NIC) bool { return n.Away && n.RDMA.Name == "mlx5_1" && len(n.RDMA.Nodes) == 2 }},
		{"sysfs is behind netlink", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2))
		}, "", func(n machine.NIC) bool { return n.Away }},
		{"renamed since netlink was asked", func(w *world) {
			w.add(odd, roce("rail2", "mlx5_1", 2))
			w.write("class/net/rail2/ifindex", strconv.Itoa(w.link("eth2", odd, 2)))
		}, "", func(n machine.NIC) bool {
			return !n.Away && n.Netdevs[0].Name == "rail2" && n.Netdevs[0].MAC == macOf(2) && n.Health.OK()
		}},
		{"two interfaces", func(w *world) {
			f := roce("eth9", "mlx4_0", 2)
			f.withNetdev("eth2", "40000")
			f["net/eth9/dev_port"], f["net/eth2/dev_port"] = "0", "1"
			w.add(odd, f)
			w.link("eth2", odd, 2)
			w.link("eth9", odd, 9)
		}, "", func(n machine.NIC) bool {
			return len(n.Netdevs) == 2 && n.Netdevs[0].Name == "eth9" && n.Netdevs[1].Name == "eth2"
		}},
		{"representors", func(w *world) {
			f := roce("eth2", "mlx5_1", 2)
			f["net/eth2/phys_port_name"] = "p0"
			f.withNetdev("eth2_0", "400000")
			f["net/eth2_0/phys_port_name"] = "pf0vf0"
			w.add(odd, f)
			w.link("eth2", odd, 2)
			w.link("eth2_0", odd, 3)
		}, "", func(n machine.NIC) bool { return len(n.Netdevs) == 1 && n.Netdevs[0].Name == "eth2" }},
		{"files that do not answer", func(w *world) {
			f := roce("eth2", "mlx5_1", 2).without("vendor", "numa_node", "net/eth2", "infiniband/mlx5_1")
			f["net/eth2/mtu"], f["infiniband/mlx5_1/ports/1/x"], f["sriov_totalvfs"] = "", "", "many"
			w.add(odd, f)
			w.link("eth2", odd, 2)
		}, "", func(n machine.NIC) bool {
			return n.Netdevs[0].Speed == 0 && n.Location.NUMANode == -1 && n.MaxVFs == 0 && n.RDMA.Ports[0].State == ""
		}},
		{"down", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2))
			index := w.link("eth2", odd, 2)
			w.onHost(func(host kernel.Namespace) { must(w.t, host.SetUp(index, false)) })
		}, "", func(n machine.NIC) bool { return n.Health.OK() && !n.Netdevs[0].Up }},
		{"no carrier", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2))
			w.kernel.AddLink(kerneltest.HostPath, kernel.Link{Name: "eth2", Up: true})
		}, "", func(n machine.NIC) bool {
			return n.Health.Reason == machine.FaultLinkDown && strings.Contains(n.Health.Message, "eth2 has no carrier")
		}},
		{"part of a bond", func(w *world) {
			w.add(odd, roce("eth2", "mlx5_1", 2))
			bond := w.kernel.AddLink(kerneltest.HostPath, kernel.Link{Name: "bond0", Kind: "bond"})
			w.kernel.AddLink(kerneltest.HostPath, kernel.Link{Name: "eth2", Master: bond})
		}, "eth2 is part of bond0", nil},
		{"vendor unknown", func(w *world) {
			f := roce("eth2", "mlx5_1", 2)
			f["vendor"] = "0xabcd"
			w.add(odd, f)
			w.link("eth2", odd, 2)
		}, "", func(n machine.NIC) bool { return n.Vendor == "abcd" }},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			w := newWorld(t)
			w.both(first, "eth1", "mlx5_0", 1)
			tt.make(w)
			d := w.describe()
			if len(d.NICs) != 2 || len(d.Faults) != 0 {
				t.Fatalf("%+v", d)
			}
			if well := d.NICs[0]; well.Withheld != "" || well.Away || !well.Health.OK() {
				t.Errorf("the other NIC: %+v", well)
			}
			n := d.NICs[1]
			if (tt.withheld == "") != (n.Withheld == "") || !strings.Contains(n.Withheld, tt.withheld) {
				t.Errorf("withheld: %q", n.Withheld)
			}
			if tt.check != nil && !tt.check(n) {
				t.Errorf("%+v", n)
			}
		})
	}
}

func TestVirtualFunctions(t *testing.T) {
	w := newWorld(t)
	const second, third = "0000:1a:00.1", "0000:1a:00.2"
	pf := roce("eth1", "mlx5_0", 1)
	pf["virtfn10"], pf["virtfn2"] = "->../"+third, "->../"+second
	w.add(first, pf)
	w.link("eth1", first, 1)
	vf := roce("eth1v2", "mlx5_2", 2)
	vf["physfn"] = "->../" + first
	w.add(second, vf)
	w.link("eth1v2", second, 2)
	other := roce("", "", 3).without("driver", "net", "infiniband", "infiniband_verbs", "infiniband_mad")
	other["physfn"], other["driver"] = "->../"+first, "->../../bus/pci/drivers/vfio-pci"
	w.add(third, other)
	nic := w.one()
	if len(nic.VFs) != 2 {
		t.Fatalf("%+v", nic.VFs)
	}
	if v := nic.VFs[0]; v.Index != 2 || v.Address != at(t, second) || v.RDMA.Name != "mlx5_2" || v.Netdevs[0].MAC != macOf(2) || v.Withheld != "" || v.Driver != "mlx5_core" {
		t.Errorf("%+v", v)
	}
	if v := nic.VFs[1]; v.Index != 10 || !strings.Contains(v.Withheld, "vfio-pci") {
		t.Errorf("%+v", v)
	}
}

// TestVFThatHasGone is a fault of its own, and costs its NIC nothing.
func TestVFThatHasGone(t *testing.T) {
	w := newWorld(t)
	f := roce("eth1", "mlx5_0", 1)
	f["virtfn0"] = "->../0000:1a:00.1"
	w.add(first, f)
	w.link("eth1", first, 1)
	d := w.describe()
	if len(d.NICs) != 1 || d.NICs[0].Withheld != "" || len(d.Faults) != 1 || d.Faults[0].Device != "0000:1a:00.1" {
		t.Errorf("%+v", d)
	}
}

func TestNothingToDescribe(t *testing.T) {
	w := newWorld(t)
	w.add("0000:1b:00.0", files{"class": "0x030200", "vendor": "0x10de"})
	w.kernel.Fail("Links", unix.ENOBUFS) // nobody asks
	if d := w.describe(); len(d.NICs)+len(d.Faults) != 0 {
		t.Errorf("%+v", d)
	}
}

func TestNoNetlink(t *testing.T) {
	w := newWorld(t)
	w.both(first, "eth1", "mlx5_0", 1)
	w.kernel.Fail("Links", unix.EPERM)
	if _, err := w.nics.DescribeNICs(t.Context()); !errors.Is(err, failure.Unreachable) {
		t.Errorf("%v", err)
	}
}
