package rdma_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// TestUplinks: what connects the node is never offered, whatever it is made of.
func TestUplinks(t *testing.T) {
	route := func(w *world, index int, to string, table int) {
		w.onHost(func(host kernel.Namespace) {
			must(w.t, host.SetUp(index, true))
			must(w.t, host.AddRoute(index, machine.Route{To: to, Table: table}))
		})
	}
	add := func(w *world, l kernel.Link) int { return w.kernel.AddLink(kerneltest.HostPath, l) }
	tests := []struct {
		name  string
		make  func(w *world)
		is    bool
		words string
	}{
		{"IPv4", func(w *world) { route(w, add(w, kernel.Link{Name: "eth1"}), "0.0.0.0/0", 0) }, true, "goes through eth1:"},
		{"IPv6", func(w *world) { route(w, add(w, kernel.Link{Name: "eth1"}), "::/0", 0) }, true, "goes through eth1:"},
		{"table of another rule", func(w *world) { route(w, add(w, kernel.Link{Name: "eth1"}), "0.0.0.0/0", 100) }, false, ""},
		{"another route", func(w *world) { route(w, add(w, kernel.Link{Name: "eth1"}), "10.0.0.0/8", 0) }, false, ""},
		{"VLAN", func(w *world) {
			eth := add(w, kernel.Link{Name: "eth1"})
			route(w, add(w, kernel.Link{Name: "eth1.7", Kind: "vlan", Lower: eth}), "0.0.0.0/0", 0)
		}, true, "goes through eth1.7, which eth1 belongs to:"},
		{"VLAN of a bond in a bridge", func(w *world) {
			bridge := add(w, kernel.Link{Name: "br0", Kind: "bridge"})
			bond := add(w, kernel.Link{Name: "bond0", Kind: "bond"})
			add(w, kernel.Link{Name: "eth1", Master: bond})
			add(w, kernel.Link{Name: "bond0.7", Kind: "vlan", Lower: bond, Master: bridge})
			route(w, bridge, "::/0", 0)
		}, true, "goes through br0, which eth1 belongs to:"},
		{"macvlan beside", func(w *world) {
			eth := add(w, kernel.Link{Name: "eth1"})
			add(w, kernel.Link{Name: "mac0", Kind: "macvlan", Lower: eth, Up: true})
			route(w, add(w, kernel.Link{Name: "eth0"}), "0.0.0.0/0", 0)
		}, false, ""},
		{"other end of a veth", func(w *world) {
			eth := add(w, kernel.Link{Name: "eth1", Kind: "veth"})
			route(w, add(w, kernel.Link{Name: "wire", Kind: "veth", Lower: eth}), "0.0.0.0/0", 0)
		}, false, ""},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			w := newWorld(t)
			w.add(first, roce("eth1", "mlx5_0", 1))
			tt.make(w)
			if got := w.one().Withheld; strings.Contains(got, "stays with it") != tt.is || !strings.Contains(got, tt.words) {
				t.Errorf("withheld: %q", got)
			}
		})
	}
}

// TestNodeAddress: without a default route the node's own address tells.
func TestNodeAddress(t *testing.T) {
	w := newWorld(t)
	w.both(first, "eth1", "mlx5_0", 1)
	for address, uplink := range map[string]bool{"10.1.0.1": true, "fd00:1::1": true, "10.1.0.2": false} {
		w.nics = rdma.New(rdma.Options{SysfsRoot: w.root, Kernel: w.kernel, NodeAddresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr(address)}})
		if why := w.one().Withheld; uplink != strings.Contains(why, "the node's address "+address+" is that of eth1") {
			t.Errorf("node with %s: withheld %q", address, why)
		}
	}
}
