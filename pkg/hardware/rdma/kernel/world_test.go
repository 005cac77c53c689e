package kernel_test

import (
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// world is a kernel with a Pod's namespace.
type world struct {
	kernel.Kernel
	pod     string
	addLink func(path, name, mac string)
	host    string
}

const mac = "02:00:00:00:00:01"

// each runs a test on the kernel in memory and on this machine's.
func each(t *testing.T, test func(t *testing.T, w world)) {
	t.Run("in-memory", func(t *testing.T) {
		k := kerneltest.New()
		k.AddNamespace("pod")
		t.Cleanup(func() {
			if n := k.Unclosed(); n != 0 {
				t.Errorf("%d namespaces have not been closed", n)
			}
		})
		test(t, world{k, "pod", func(path, name, mac string) {
			k.AddLink(path, kernel.Link{Name: name, MAC: mac, MTU: 1500, MaxMTU: 65535})
		}, kerneltest.HostPath})
	})
	t.Run("real", func(t *testing.T) {
		k := kerneltest.NewReal(t)
		test(t, world{k, k.Namespace("pod"), k.AddVeth, k.HostNamespace})
	})
}

// opened opens host and Pod.
func (w world) opened(t *testing.T) (host, pod kernel.Namespace) {
	t.Helper()
	host, err := w.Host()
	must(t, err)
	t.Cleanup(func() { host.Close() })
	pod, err = w.Open(w.pod)
	must(t, err)
	t.Cleanup(func() { pod.Close() })
	return host, pod
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// link returns one by its name.
func link(t *testing.T, in kernel.Namespace, name string) (kernel.Link, bool) {
	t.Helper()
	links, err := in.Links()
	must(t, err)
	i := slices.IndexFunc(links, func(l kernel.Link) bool { return l.Name == name })
	if i < 0 {
		return kernel.Link{}, false
	}
	return links[i], true
}

func have(t *testing.T, in kernel.Namespace, name string) kernel.Link {
	t.Helper()
	l, ok := link(t, in, name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return l
}

// dressed has MTU, addresses and routes, and is up.
func dressed(t *testing.T, in kernel.Namespace, name string) kernel.Link {
	t.Helper()
	l := have(t, in, name)
	must(t, in.SetMTU(l.Index, 9000))
	must(t, in.SetUp(l.Index, true))
	for _, a := range []string{"10.1.0.1/24", "fd00:1::1/64"} {
		must(t, in.AddAddress(l.Index, a))
	}
	for _, r := range routes {
		must(t, in.AddRoute(l.Index, r))
	}
	return l
}

var routes = []machine.Route{
	{To: "10.2.0.0/16", Via: "10.1.0.254"},
	{To: "10.3.0.0/16", Metric: 7, From: "10.1.0.1"},
	{To: "10.4.0.0/16", Via: "192.168.9.9", Table: 101}, // next hop that no route leads to
	{To: "fd00:2::/64", Via: "fd00:1::ff", From: "fd00:1::1"},
	{To: "10.5.0.0/16", Via: "fd00:1::ff"}, // RFC 8950
}

// of are the addresses, or routes, of a link that the kernel did not make.
func addresses(t *testing.T, in kernel.Namespace, index int) []string {
	t.Helper()
	all, err := in.Addresses()
	must(t, err)
	var own []string
	for _, a := range all {
		if a.Link == index && !a.Kernel {
			own = append(own, a.Address)
		}
	}
	slices.Sort(own)
	return own
}

func destinations(t *testing.T, in kernel.Namespace, index int) []string {
	t.Helper()
	all, err := in.Routes()
	must(t, err)
	var own []string
	for _, r := range all {
		if r.Link == index && !r.Kernel {
			own = append(own, r.To+" "+r.Via)
		}
	}
	slices.Sort(own)
	return own
}
