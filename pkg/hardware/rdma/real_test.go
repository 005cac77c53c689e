package rdma_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// onReal is this machine's kernel with one interface, whose PCI function a tree has, and a
// Pod's namespace.
func onReal(t testing.TB) (k *kerneltest.Real, nics *rdma.NICs, pod string) {
	t.Helper()
	k = kerneltest.NewReal(t)
	pod = k.Namespace("pod")
	k.AddVeth(k.HostNamespace, "eth1", macOf(1))
	w := &world{t: t, root: t.TempDir()}
	w.add(first, roce("eth1", "mlx5_0", 1))
	host, err := k.Host()
	must(t, err)
	defer host.Close()
	links, err := host.Links()
	must(t, err)
	index := named(links, "eth1").Index
	must(t, host.SetMTU(index, 4200))
	must(t, host.SetUp(index, true))
	for _, a := range []string{"10.1.0.1/24", "10.1.0.2/32", "fd00:1::1/64"} {
		must(t, host.AddAddress(index, a))
	}
	for _, r := range []machine.Route{
		{To: "10.2.0.0/16", Via: "10.1.0.254", Metric: 5, From: "10.1.0.2"},
		{To: "10.2.0.0/16", Via: "10.1.0.253", Metric: 6},
		{To: "10.3.0.0/24"},
		{To: "10.4.0.0/24", Via: "10.3.0.7"}, // through the one before
		{To: "0.0.0.0/0", Via: "10.1.0.254", Table: 101},
		{To: "fd00:2::/64", Via: "fd00:1::ff"},
	} {
		must(t, host.AddRoute(index, r))
	}
	return k, rdma.New(rdma.Options{SysfsRoot: w.root, Kernel: k, LockFile: t.TempDir() + "/lock"}), pod
}

func TestRealThereAndBack(t *testing.T) {
	_, nics, pod := onReal(t)
	home, err := nics.NICHome(t.Context(), at(t, first))
	must(t, err)
	if len(home.Netdevs) != 1 || len(home.Netdevs[0].Addresses) != 3 || len(home.Netdevs[0].Routes) != 6 {
		t.Fatalf("%+v", home)
	}
	for _, order := range []hardware.NICMove{
		{Home: home},
		{Home: home, Name: "net1", MTU: 9000, Addresses: []string{"10.9.0.1/24", "fd00:9::1/64"}, Routes: []machine.Route{
			{To: "10.8.0.0/16", Via: "10.9.0.254"}, {To: "10.7.0.0/16", Via: "172.16.0.1"}, {To: "fd00:8::/64", Via: "fd00:9::ff", From: "fd00:9::1"},
		}},
	} {
		for range 2 {
			must(t, nics.Move(t.Context(), pod, order))
		}
		d, err := nics.DescribeNICs(t.Context())
		if err != nil || len(d.NICs) != 1 || !d.NICs[0].Away || len(d.NICs[0].Netdevs) != 0 {
			t.Errorf("%+v, %v", d, err)
		}
		if _, err := nics.NICHome(t.Context(), at(t, first)); !errors.Is(err, failure.Conflict) {
			t.Errorf("the home of what is away: %v", err)
		}
		for range 2 {
			must(t, nics.BringHome(t.Context(), home))
		}
		if back, err := nics.NICHome(t.Context(), at(t, first)); err != nil || !reflect.DeepEqual(back, home) {
			t.Errorf("%v: back home it is\n%+v, it was\n%+v", err, back, home)
		}
	}
}

func TestRealInPod(t *testing.T) {
	k, nics, pod := onReal(t)
	home, err := nics.NICHome(t.Context(), at(t, first))
	must(t, err)
	must(t, nics.Move(t.Context(), pod, hardware.NICMove{Home: home, Name: "net1", MTU: 1400, Addresses: []string{"10.9.0.1/24"}, Routes: []machine.Route{{To: "10.8.0.0/16", Via: "10.9.0.254"}}}))
	in, err := k.Open(pod)
	must(t, err)
	defer in.Close()
	links, err := in.Links()
	must(t, err)
	l := named(links, "net1")
	if l == nil || !l.Up || l.MTU != 1400 || l.MAC != macOf(1) {
		t.Fatalf("%+v", links)
	}
	addresses, err := in.Addresses()
	must(t, err)
	routes, err := in.Routes()
	must(t, err)
	var has []string
	for _, a := range addresses {
		if a.Link == l.Index && !a.Kernel {
			has = append(has, a.Address)
		}
	}
	for _, r := range routes {
		if r.Link == l.Index && !r.Kernel {
			has = append(has, r.To+" "+r.Via)
		}
	}
	if want := []string{"10.9.0.1/24", "10.8.0.0/16 10.9.0.254"}; !reflect.DeepEqual(has, want) {
		t.Errorf("%q, want %q", has, want)
	}
}

// TestRealNamesTaken: on the way there and on the way back.
func TestRealNamesTaken(t *testing.T) {
	k, nics, pod := onReal(t)
	home, err := nics.NICHome(t.Context(), at(t, first))
	must(t, err)
	k.AddVeth(pod, "net1", macOf(0x71))
	if err := nics.Move(t.Context(), pod, hardware.NICMove{Home: home, Name: "net1"}); !errors.Is(err, failure.Conflict) {
		t.Fatalf("%v", err)
	}
	must(t, nics.Move(t.Context(), pod, hardware.NICMove{Home: home, Name: "net2"}))
	k.AddVeth(k.HostNamespace, "net2", macOf(0x72))
	k.AddVeth(k.HostNamespace, "eth1", macOf(0x73))
	if err := nics.BringHome(t.Context(), home); !errors.Is(err, failure.Conflict) || !strings.Contains(err.Error(), macOf(0x73)) {
		t.Fatalf("%v", err)
	}
	k.Delete(k.HostNamespace, "eth1")
	must(t, nics.BringHome(t.Context(), home))
	if back, err := nics.NICHome(t.Context(), at(t, first)); err != nil || !reflect.DeepEqual(back, home) {
		t.Errorf("%v: back home it is\n%+v, it was\n%+v", err, back, home)
	}
}

// TestRealFailureMidway: a route that the kernel refuses; the NIC is at home afterwards.
func TestRealFailureMidway(t *testing.T) {
	_, nics, pod := onReal(t)
	home, err := nics.NICHome(t.Context(), at(t, first))
	must(t, err)
	order := hardware.NICMove{Home: home, Name: "net1", Addresses: []string{"10.9.0.1/24"}, Routes: []machine.Route{{To: "10.8.0.0/16", Via: "10.9.0.254", From: "10.9.0.77"}}}
	if err := nics.Move(t.Context(), pod, order); !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "10.8.0.0/16") {
		t.Fatalf("%v", err)
	}
	if back, err := nics.NICHome(t.Context(), at(t, first)); err != nil || !reflect.DeepEqual(back, home) {
		t.Errorf("%v: back home it is\n%+v, it was\n%+v", err, back, home)
	}
}

// TestRealSharedRoute: a move would take the other interface's part of the route with it.
func TestRealSharedRoute(t *testing.T) {
	k, nics, _ := onReal(t)
	k.AddVeth(k.HostNamespace, "eth2", macOf(2))
	k.AddMultipath(k.HostNamespace, "10.77.0.0/16", map[string]string{"eth1": "10.1.0.254", "eth2": ""})
	if _, err := nics.NICHome(t.Context(), at(t, first)); !errors.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "10.77.0.0/16") {
		t.Errorf("%v", err)
	}
}

// TestRealNothingLeftOpen: moves leave no file open, and no thread in a namespace.
func TestRealNothingLeftOpen(t *testing.T) {
	_, nics, pod := onReal(t)
	home, err := nics.NICHome(t.Context(), at(t, first))
	must(t, err)
	own, err := os.Readlink("/proc/self/ns/net")
	must(t, err)
	files := 0
	for i := range 20 {
		must(t, nics.Move(t.Context(), pod, hardware.NICMove{Home: home, Name: "net1"}))
		must(t, nics.BringHome(t.Context(), home))
		open, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		if i == 0 {
			files = len(open)
		} else if len(open) > files {
			t.Fatalf("%d files are open, after the first move it were %d", len(open), files)
		}
	}
	tasks, err := os.ReadDir("/proc/self/task")
	must(t, err)
	for _, task := range tasks {
		if in, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/net"); err == nil && in != own {
			t.Errorf("thread %s is in %s", task.Name(), in)
		}
	}
}

// TestRealUplink: with the kernel's own rules and default routes.
func TestRealUplink(t *testing.T) {
	k, nics, _ := onReal(t)
	withheld := func() string {
		d, err := nics.DescribeNICs(t.Context())
		must(t, err)
		return d.NICs[0].Withheld
	}
	if why := withheld(); why != "" {
		t.Errorf("only table 101 has a default route: %q", why)
	}
	host, err := k.Host()
	must(t, err)
	defer host.Close()
	links, err := host.Links()
	must(t, err)
	must(t, host.AddRoute(named(links, "eth1").Index, machine.Route{To: "::/0", Via: "fd00:1::ff"}))
	if why := withheld(); !strings.Contains(why, "default route goes through eth1") {
		t.Errorf("%q", why)
	}
}

// TestRealRules: a rule for some packets makes no uplink, one for all does.
func TestRealRules(t *testing.T) {
	k, nics, _ := onReal(t)
	for _, rule := range []struct {
		from   string
		uplink bool
	}{{"10.1.0.1/32", false}, {"", true}} {
		k.AddRule(k.HostNamespace, rule.from, 101)
		d, err := nics.DescribeNICs(t.Context())
		must(t, err)
		if got := d.NICs[0].Withheld; (got != "") != rule.uplink {
			t.Errorf("rule from %q: withheld %q", rule.from, got)
		}
	}
}

var _ kernel.Kernel = (*kerneltest.Real)(nil)
