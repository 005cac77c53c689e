package rdma_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// TestBadOrders: each says field, value and cure, and moves nothing.
func TestBadOrders(t *testing.T) {
	tests := []struct {
		order hardware.NICMove
		class error
		words []string
	}{
		{hardware.NICMove{Name: "sixteen-letters-"}, failure.Invalid, []string{"name:", "sixteen-letters-", "15 bytes"}},
		{hardware.NICMove{Name: "a/b"}, failure.Invalid, []string{"name:", "a/b", "printable"}},
		{hardware.NICMove{Name: "a b"}, failure.Invalid, []string{"name:", "printable"}},
		{hardware.NICMove{Name: ".."}, failure.Invalid, []string{"name:", "printable"}},
		{hardware.NICMove{Name: "net%d"}, failure.Invalid, []string{"name:", "net%d", "printable"}},
		{hardware.NICMove{Name: "eth0"}, failure.Conflict, []string{"name:", "eth0", "interfaceName"}},
		{hardware.NICMove{MTU: 67}, failure.Invalid, []string{"mtu:", "67", "from 68"}},
		{hardware.NICMove{MTU: 65536}, failure.Invalid, []string{"mtu:", "65536", "to 65535"}},
		{hardware.NICMove{MTU: 9979}, failure.Invalid, []string{"mtu:", "9979", "9978 at most"}},
		{hardware.NICMove{MTU: 1279}, failure.Invalid, []string{"mtu: 1279", "IPv6 needs 1280", "fd00:1::1/", "give other addresses"}},
		{hardware.NICMove{Addresses: []string{"10.0.0.1"}}, failure.Invalid, []string{"addresses:", "10.0.0.1", "prefix"}},
		{hardware.NICMove{Routes: []machine.Route{{To: "10.0.0.1"}}}, failure.Invalid, []string{"routes: to:", "10.0.0.1", "prefix"}},
		{hardware.NICMove{Routes: []machine.Route{{To: "10.0.0.0/8", Via: "x"}}}, failure.Invalid, []string{"routes: via:", "x", "address"}},
		{hardware.NICMove{Routes: []machine.Route{{To: "10.0.0.0/8", From: "10.0.0.1/8"}}}, failure.Invalid, []string{"routes: from:", "10.0.0.1/8"}},
		{hardware.NICMove{Routes: []machine.Route{{To: "10.0.0.0/8", From: "fd00::1"}}}, failure.Invalid, []string{"routes: from:", "fd00::1", "family"}},
		{hardware.NICMove{Nodes: []string{"/dev/infiniband/uverbs7"}}, failure.Conflict, []string{"/dev/infiniband/uverbs7", "mlx5_0", "delete the Pod"}},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w, home := withPod(t)
			tt.order.Home = home
			err := w.move(tt.order)
			if !errors.Is(err, tt.class) {
				t.Fatalf("%v", err)
			}
			for _, word := range tt.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v: without %q", err, word)
				}
			}
			w.atHome(home)
		})
	}
}

func TestMoveOfWhatIsNotThere(t *testing.T) {
	w, home := withPod(t)
	if err := w.nics.Move(t.Context(), "/proc/1/ns/net", hardware.NICMove{Home: home}); !errors.Is(err, failure.Absent) {
		t.Errorf("a namespace that has ended: %v", err)
	}
	w.kernel.AddNamespace("another")
	must(t, w.nics.Move(t.Context(), "another", hardware.NICMove{Home: home}))
	if err := w.move(hardware.NICMove{Home: home}); !errors.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "another Pod") {
		t.Errorf("a NIC that another Pod has: %v", err)
	}
	w.remove(first)
	if err := w.move(hardware.NICMove{Home: home}); !errors.Is(err, failure.Absent) {
		t.Errorf("a NIC that was pulled out: %v", err)
	}
}

// TestAllOrNothing: whatever fails, the NIC is at home as it was afterwards.
func TestAllOrNothing(t *testing.T) {
	for _, call := range []string{"SetMTU", "SetUp", "AddAddress", "AddRoute", "MoveRDMA"} {
		t.Run(call, func(t *testing.T) {
			w, _ := withPod(t)
			w.kernel.SetExclusive(true)
			home := w.home()
			// What fails in the Pod must do on the host.
			w.kernel.FailIn(pod, call, unix.EIO)
			err := w.move(hardware.NICMove{Home: home, Name: "net1", MTU: 9000})
			if !errors.Is(err, unix.EIO) {
				t.Fatalf("%v", err)
			}
			w.atHome(home)
		})
	}
}

// TestWhatWasThereStays: a failure for a Pod's second container does not cost the first
// one its NIC.
func TestWhatWasThereStays(t *testing.T) {
	w, home := withPod(t)
	order := hardware.NICMove{Home: home, Name: "net1"}
	must(t, w.move(order))
	order.MTU = 9000
	w.kernel.FailIn(pod, "SetMTU", unix.EIO)
	if err := w.move(order); !errors.Is(err, unix.EIO) {
		t.Fatalf("%v", err)
	}
	if links, _, _ := w.state(pod); named(links, "net1") == nil {
		t.Errorf("%+v", links)
	}
}
