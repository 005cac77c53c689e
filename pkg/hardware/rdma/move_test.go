package rdma_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

const pod = "pod"

// withPod is a world with one NIC at home, and a Pod's namespace that has an eth0.
func withPod(t *testing.T) (*world, machine.NICHome) {
	t.Helper()
	w := newWorld(t)
	w.both(first, "eth1", "mlx5_0", 1)
	w.kernel.AddNamespace(pod)
	w.kernel.AddLink(pod, kernel.Link{Name: "eth0", MAC: macOf(0xfe), Kind: "veth"})
	return w, w.home()
}

func (w *world) home() machine.NICHome {
	w.t.Helper()
	home, err := w.nics.NICHome(w.t.Context(), at(w.t, first))
	must(w.t, err)
	return home
}

// moved is the tree after the interface has gone: sysfs shows what is in its namespace.
func (w *world) state(path string) (links []kernel.Link, addresses []string, routes []string) {
	w.t.Helper()
	w.in(path, func(n kernel.Namespace) {
		var err error
		links, err = n.Links()
		must(w.t, err)
		has, err := n.Addresses()
		must(w.t, err)
		for _, a := range has {
			if !a.Kernel {
				addresses = append(addresses, a.Address)
			}
		}
		rs, err := n.Routes()
		must(w.t, err)
		for _, r := range rs {
			if !r.Kernel {
				routes = append(routes, fmt.Sprintf("%s %s %d %d", r.To, r.Via, r.Metric, r.Table))
			}
		}
	})
	slices.Sort(addresses)
	slices.Sort(routes)
	return links, addresses, routes
}

func (w *world) move(order hardware.NICMove) error {
	return w.nics.Move(w.t.Context(), pod, order)
}

// atHome fails the test where the NIC is not exactly as it was.
func (w *world) atHome(want machine.NICHome) {
	w.t.Helper()
	if got := w.home(); !reflect.DeepEqual(got, want) {
		w.t.Errorf("at home it is\n%+v, it was\n%+v", got, want)
	}
}

func named(links []kernel.Link, name string) *kernel.Link {
	i := slices.IndexFunc(links, func(l kernel.Link) bool { return l.Name == name })
	if i < 0 {
		return nil
	}
	return &links[i]
}

func TestMoveAsOnTheHost(t *testing.T) {
	w, home := withPod(t)
	must(t, w.move(hardware.NICMove{Home: home, Nodes: []string{"/dev/infiniband/uverbs1", "/dev/infiniband/umad1", "/dev/infiniband/rdma_cm"}}))
	links, addresses, routes := w.state(pod)
	l := named(links, "eth1")
	if l == nil || !l.Up || l.MTU != 4200 {
		t.Errorf("%+v", links)
	}
	if !slices.Equal(addresses, []string{"10.1.0.1/24", "fd00:1::1/64"}) || !slices.Equal(routes, []string{"10.100.0.0/16 10.1.0.254 1 0"}) {
		t.Errorf("addresses %q, routes %q", addresses, routes)
	}
	must(t, w.nics.BringHome(t.Context(), home))
	w.atHome(home)
}

func TestMoveAsOrdered(t *testing.T) {
	w, home := withPod(t)
	order := hardware.NICMove{
		Home: home, Name: "net1", MTU: 9000, Addresses: []string{"10.9.0.1/24"},
		Routes: []machine.Route{{To: "10.8.0.0/16", Via: "10.9.0.254", From: "10.9.0.1"}, {To: "10.9.1.0/24"}},
	}
	for range 3 { // and for the Pod's other containers
		must(t, w.move(order))
		links, addresses, routes := w.state(pod)
		l := named(links, "net1")
		if l == nil || !l.Up || l.MTU != 9000 || named(links, "eth1") != nil {
			t.Errorf("%+v", links)
		}
		if !slices.Equal(addresses, []string{"10.9.0.1/24"}) || !slices.Equal(routes, []string{"10.8.0.0/16 10.9.0.254 0 0", "10.9.1.0/24  0 0"}) {
			t.Errorf("addresses %q, routes %q", addresses, routes)
		}
	}
	for range 2 {
		must(t, w.nics.BringHome(t.Context(), home))
		w.atHome(home)
	}
}

// TestSourceOfAnother: a host may have packets to a NIC's network come from an address of its
// loopback, which no Pod has.
func TestSourceOfAnother(t *testing.T) {
	w, home := withPod(t)
	own := home.Netdevs[0].Addresses[0]
	own, _, _ = strings.Cut(own, "/")
	home.Netdevs[0].Routes = []machine.Route{{To: "10.5.0.0/16", From: "192.0.2.1"}, {To: "10.6.0.0/16", From: own}}
	must(t, w.move(hardware.NICMove{Home: home}))
	w.in(pod, func(n kernel.Namespace) {
		routes, err := n.Routes()
		must(t, err)
		from := map[string]string{}
		for _, r := range routes {
			if !r.Kernel {
				from[r.To] = r.From
			}
		}
		if want := map[string]string{"10.5.0.0/16": "", "10.6.0.0/16": own}; !reflect.DeepEqual(from, want) {
			t.Errorf("sources by destination %v, want %v", from, want)
		}
	})
}

// TestRestartedContainer: what a container has changed is made as ordered for the next.
func TestRestartedContainer(t *testing.T) {
	w, home := withPod(t)
	order := hardware.NICMove{Home: home, Name: "net1"}
	must(t, w.move(order))
	w.in(pod, func(n kernel.Namespace) {
		links, err := n.Links()
		must(t, err)
		index := named(links, "net1").Index
		must(t, n.SetUp(index, false))
		must(t, n.SetName(index, "other"))
		must(t, n.SetMTU(index, 1500))
	})
	must(t, w.move(order))
	links, addresses, _ := w.state(pod)
	if l := named(links, "net1"); l == nil || !l.Up || l.MTU != 4200 || len(addresses) != 2 {
		t.Errorf("%+v, %q", links, addresses)
	}
}

func TestMoveOnHostNetwork(t *testing.T) {
	w, home := withPod(t)
	must(t, w.nics.Move(t.Context(), kerneltest.HostPath, hardware.NICMove{Home: home, Name: "net1", Nodes: []string{"/dev/infiniband/uverbs1"}}))
	w.atHome(home)
}

func TestExclusiveMode(t *testing.T) {
	w, _ := withPod(t)
	w.kernel.SetExclusive(true)
	home := w.home()
	order := hardware.NICMove{Home: home, Name: "net1"}
	for range 2 {
		must(t, w.move(order))
		w.in(pod, func(n kernel.Namespace) {
			if devices, err := n.RDMADevices(); err != nil || len(devices) != 1 || devices[0].Name != "mlx5_0" {
				t.Errorf("%+v, %v", devices, err)
			}
		})
	}
	must(t, w.nics.BringHome(t.Context(), home))
	w.atHome(home)
	w.onHost(func(n kernel.Namespace) {
		if devices, err := n.RDMADevices(); err != nil || len(devices) != 1 {
			t.Errorf("%+v, %v", devices, err)
		}
	})
}

// TestInfiniBandAlone: a card without an interface has only its RDMA device to move.
func TestInfiniBandAlone(t *testing.T) {
	w := newWorld(t)
	f := roce("", "mlx5_0", 1).without("net", "infiniband")
	f.withRDMA("mlx5_0", 1, "InfiniBand")
	w.add(first, f)
	w.kernel.AddRDMA(kerneltest.HostPath, "mlx5_0")
	w.kernel.AddNamespace(pod)
	w.kernel.SetExclusive(true)
	home := w.home()
	must(t, w.move(hardware.NICMove{Home: home}))
	w.in(pod, func(n kernel.Namespace) {
		if devices, _ := n.RDMADevices(); len(devices) != 1 {
			t.Errorf("%+v", devices)
		}
	})
	must(t, w.nics.BringHome(t.Context(), home))
	w.atHome(home)
	if err := w.move(hardware.NICMove{Home: home, Name: "net1"}); !errors.Is(err, failure.Invalid) {
		t.Errorf("a name for what has no interface: %v", err)
	}
}
