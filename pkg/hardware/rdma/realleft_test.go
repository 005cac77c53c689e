package rdma_test

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
)

// TestRealTidy: nothing that a container with privileges left is on the interface afterwards.
func TestRealTidy(t *testing.T) {
	k, nics, pod := onReal(t)
	home, err := nics.NICHome(t.Context(), at(t, first))
	must(t, err)
	must(t, nics.Move(t.Context(), pod, hardware.NICMove{Home: home, Name: "net1"}))
	if err := k.Soil(pod, "net1"); err != nil {
		t.Skipf("needs a kernel with XDP and clsact, and the right to load programs: %v", err)
	}
	in, err := k.Open(pod)
	must(t, err)
	defer in.Close()
	links, err := in.Links()
	must(t, err)
	if l := named(links, "net1"); !l.Promiscuous || !l.AllMulticast || l.XDP == 0 || !slices.Contains(k.Qdiscs(pod, "net1"), "clsact") {
		t.Fatalf("in the Pod: %+v, %q", l, k.Qdiscs(pod, "net1"))
	}
	must(t, nics.BringHome(t.Context(), home))
	if back, err := nics.NICHome(t.Context(), at(t, first)); err != nil || !reflect.DeepEqual(back, home) {
		t.Errorf("%v: back home it is\n%+v, it was\n%+v", err, back, home)
	}
	if left := k.Qdiscs(k.HostNamespace, "eth1"); slices.Contains(left, "clsact") {
		t.Errorf("queueing disciplines: %q", left)
	}
}

// TestRealSysctls: the host's come home, and none of the container's do.
func TestRealSysctls(t *testing.T) {
	k, nics, pod := onReal(t)
	set := func(path, link string, sysctls map[string]int) {
		in, err := k.Open(path)
		must(t, err)
		defer in.Close()
		for name, value := range sysctls {
			must(t, in.SetSysctl(link, name, value))
		}
	}
	set(k.HostNamespace, "eth1", map[string]int{
		"ipv4/conf/rp_filter": 2, "ipv4/conf/arp_ignore": 1, "ipv4/conf/forwarding": 1,
		"ipv6/conf/accept_ra": 0, "ipv6/conf/forwarding": 1, "ipv6/conf/addr_gen_mode": 1,
	})
	home, err := nics.NICHome(t.Context(), at(t, first))
	must(t, err)
	must(t, nics.Move(t.Context(), pod, hardware.NICMove{Home: home, Name: "net1"}))
	set(pod, "net1", map[string]int{"ipv4/conf/rp_filter": 1, "ipv4/conf/accept_local": 1, "ipv6/conf/accept_ra": 2, "ipv6/conf/use_tempaddr": 2})
	must(t, nics.BringHome(t.Context(), home))
	if back, err := nics.NICHome(t.Context(), at(t, first)); err != nil || !reflect.DeepEqual(back, home) {
		t.Errorf("%v: back home it is\n%+v, it was\n%+v", err, back, home)
	}
}

// TestRealWithoutIPv6: where new interfaces have no IPv6, in the Pod or on the host, the NIC
// has the addresses of it that it is to have.
func TestRealWithoutIPv6(t *testing.T) {
	k, nics, pod := onReal(t)
	home, err := nics.NICHome(t.Context(), at(t, first))
	must(t, err)
	for _, path := range []string{pod, k.HostNamespace} {
		must(t, k.Inside(path, func() error {
			return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
		}))
	}
	must(t, nics.Move(t.Context(), pod, hardware.NICMove{Home: home, Name: "net1"}))
	in, err := k.Open(pod)
	must(t, err)
	defer in.Close()
	addresses, err := in.Addresses()
	must(t, err)
	if !slices.ContainsFunc(addresses, func(a kernel.Address) bool { return a.Address == "fd00:1::1/64" }) {
		t.Errorf("the Pod has %+v", addresses)
	}
	must(t, nics.BringHome(t.Context(), home))
	if back, err := nics.NICHome(t.Context(), at(t, first)); err != nil || !reflect.DeepEqual(back, home) {
		t.Errorf("%v: back home it is\n%+v, it was\n%+v", err, back, home)
	}
}
