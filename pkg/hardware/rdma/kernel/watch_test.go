package kernel_test

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// TestWatch: what happens to links, addresses, default routes and rules on this
// machine's kernel.
func TestWatch(t *testing.T) {
	k := kerneltest.NewReal(t)
	pod := k.Namespace("pod")
	watch := patiencetest.Watch(t, k.Watch)
	host, err := k.Host()
	must(t, err)
	defer host.Close()
	there, err := k.Open(pod)
	must(t, err)
	defer there.Close()

	k.AddVeth(k.HostNamespace, "first", "02:00:00:00:00:f1")
	index := have(t, host, "first").Index
	watch.Await("anything", func() { must(t, host.SetMTU(index, 1400)); must(t, host.SetMTU(index, 1500)) }, func(kernel.Event) bool { return true })

	k.AddVeth(k.HostNamespace, "eth1", mac)
	watch.Await("an interface", nil, func(e kernel.Event) bool { return e.Link == "eth1" && e.Kind == "veth" && e.Index != 0 })
	index = have(t, host, "eth1").Index
	must(t, host.SetUp(index, true))
	must(t, host.AddAddress(index, "10.1.0.1/24"))
	watch.Await("an address", nil, func(e kernel.Event) bool { return e == kernel.Event{Index: index} })
	must(t, host.AddRoute(index, machine.Route{To: "10.2.0.0/16", Via: "10.1.0.254"})) // of no interest
	must(t, host.AddRoute(index, machine.Route{To: "0.0.0.0/0", Via: "10.1.0.254"}))
	watch.Await("a default route", nil, func(e kernel.Event) bool { return e == kernel.Event{} })
	k.AddRule(k.HostNamespace, "", 101)
	watch.Await("a rule", nil, func(e kernel.Event) bool { return e == kernel.Event{} })
	must(t, host.MoveLink(index, there, "net1"))
	watch.Await("a move", nil, func(e kernel.Event) bool { return e.Link == "eth1" })
	must(t, there.MoveLink(index, host, "eth1"))
	watch.Await("a return", nil, func(e kernel.Event) bool { return e.Link == "eth1" || e.Link == "net1" })
	k.Delete(k.HostNamespace, "eth1")
	watch.Await("an end", nil, func(e kernel.Event) bool { return e.Link == "eth1" })
}

func TestWatchNowhere(t *testing.T) {
	if err := (&kernel.Linux{HostNamespace: "/nonexistent"}).Watch(t.Context(), func(kernel.Event) {}); err == nil {
		t.Error("watching a namespace that is not there: no error")
	}
}
