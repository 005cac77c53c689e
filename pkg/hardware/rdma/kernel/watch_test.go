package kernel_test

import (
	"context"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// watched runs Watch beside the test.
func watched(t *testing.T, k kernel.Kernel) <-chan kernel.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	seen, ended := make(chan kernel.Event, 1024), make(chan error, 1)
	go func() { ended <- k.Watch(ctx, func(e kernel.Event) { seen <- e }) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Watch ended with %v", err)
			}
		case <-time.After(patiencetest.Limit):
			t.Error("Watch does not end with its context")
		}
	})
	return seen
}

// comes waits for an event, and passes by others.
func comes(t *testing.T, seen <-chan kernel.Event, what string, is func(kernel.Event) bool) {
	t.Helper()
	for over := time.After(patiencetest.Limit); ; {
		select {
		case e := <-seen:
			if is(e) {
				return
			}
		case <-over:
			t.Fatalf("%s was not noticed", what)
		}
	}
}

// begun does something until it is seen: nothing else says that the watch has begun.
func begun(t *testing.T, seen <-chan kernel.Event, raise func()) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for over := time.After(patiencetest.Limit); ; {
		select {
		case <-seen:
			return
		case <-again.C:
			raise()
		case <-over:
			t.Fatal("nothing was noticed")
		}
	}
}

// TestWatch: what happens to links, addresses, default routes and rules on this
// machine's kernel.
func TestWatch(t *testing.T) {
	k := kerneltest.NewReal(t)
	pod := k.Namespace("pod")
	seen := watched(t, k)
	host, err := k.Host()
	must(t, err)
	defer host.Close()
	there, err := k.Open(pod)
	must(t, err)
	defer there.Close()

	k.AddVeth(k.HostNamespace, "first", "02:00:00:00:00:f1")
	index := have(t, host, "first").Index
	begun(t, seen, func() { must(t, host.SetMTU(index, 1400)); must(t, host.SetMTU(index, 1500)) })

	k.AddVeth(k.HostNamespace, "eth1", mac)
	comes(t, seen, "an interface", func(e kernel.Event) bool { return e.Link == "eth1" && e.Kind == "veth" && e.Index != 0 })
	index = have(t, host, "eth1").Index
	must(t, host.SetUp(index, true))
	must(t, host.AddAddress(index, "10.1.0.1/24"))
	comes(t, seen, "an address", func(e kernel.Event) bool { return e == kernel.Event{Index: index} })
	must(t, host.AddRoute(index, machine.Route{To: "10.2.0.0/16", Via: "10.1.0.254"})) // of no interest
	must(t, host.AddRoute(index, machine.Route{To: "0.0.0.0/0", Via: "10.1.0.254"}))
	comes(t, seen, "a default route", func(e kernel.Event) bool { return e == kernel.Event{} })
	k.AddRule(k.HostNamespace, "", 101)
	comes(t, seen, "a rule", func(e kernel.Event) bool { return e == kernel.Event{} })
	must(t, host.MoveLink(index, there, "net1"))
	comes(t, seen, "a move", func(e kernel.Event) bool { return e.Link == "eth1" })
	must(t, there.MoveLink(index, host, "eth1"))
	comes(t, seen, "a return", func(e kernel.Event) bool { return e.Link == "eth1" || e.Link == "net1" })
	k.Delete(k.HostNamespace, "eth1")
	comes(t, seen, "an end", func(e kernel.Event) bool { return e.Link == "eth1" })
}

func TestWatchNowhere(t *testing.T) {
	if err := (&kernel.Linux{HostNamespace: "/nonexistent"}).Watch(t.Context(), func(kernel.Event) {}); err == nil {
		t.Error("watching a namespace that is not there: no error")
	}
}
