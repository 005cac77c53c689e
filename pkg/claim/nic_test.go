package claim_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func nicConfig(fields string) string {
	return `{"apiVersion":"dovetail.dev/v1alpha1","kind":"NICConfig",` + fields + `}`
}

// nic is the n-th that is offered; first is what most tests are about.
func (w *world) nic(n int) *machine.NIC {
	nics := slices.Clone(w.m.Machine().NICs)
	nics = slices.DeleteFunc(nics, func(n machine.NIC) bool { return !n.Offered() })
	return &nics[n]
}

func (w *world) first() *machine.NIC { return w.nic(0) }

// A NIC goes into a Pod, comes back when that has gone, and is what it was.
func TestNICGoesAndComes(t *testing.T) {
	for name, comeBack := range map[string]func(w *world) error{
		"the Pod's namespace has ended":      func(w *world) error { return w.End("a") },
		"the Pod's namespace is still there": func(*world) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			nic := w.first()
			before := *w.m.Machine()
			a := w.allocate("a", nicConfig(`"interfaceName":"net1","mtu":4200,"addresses":["10.0.0.7/8"]`), nic.Name())
			want := claim.NIC{
				InPod: true, Interface: "net1", MAC: nic.Netdevs[0].MAC, Addresses: []string{"10.0.0.7/8"}, RDMA: nic.RDMA.Name,
				Lossless: true, PFC: []int{3},
			}
			for range 2 { // the same when asked again
				d := w.prepare(a)
				if got := *d[0].NIC; !reflect.DeepEqual(got, want) {
					t.Errorf("told %+v, want %+v", got, want)
				}
				w.check("a")
				w.must(w.Start("a"))
				w.check("a")
			}
			w.look()
			if now := w.first(); !now.Away || !reflect.DeepEqual(now.Netdevs, nic.Netdevs) || now.Health.Reason != "" {
				t.Errorf("published as %+v", now)
			}
			w.restart()
			if got, want := w.m.Machine().Devices(), before.Devices(); len(got) != len(want) {
				t.Errorf("%d devices after a restart, before %d", len(got), len(want))
			}
			w.must(comeBack(w))
			w.look()
			w.unprepare(a)
			w.check()
			w.look()
			if now := w.m.Machine(); !now.Equal(&before) {
				t.Errorf("the machine is %+v, it was %+v", now.NICs, before.NICs)
			}
			w.unprepare(a) // again
			w.check()
		})
	}
}

// A NIC that has changed since the last look is on record, and told of, as it is now.
func TestNICIsReadAtPrepare(t *testing.T) {
	w := newWorld(t)
	nic, cable := w.first().Name(), w.first().Netdevs[0].Name
	w.must(w.Machine.SetLink(cable, false))
	w.look()
	if w.first().RDMA.Ports[0].State == machine.PortActive {
		t.Fatal("without its cable the port is active")
	}
	w.must(w.Machine.SetLink(cable, true))
	told := w.prepare(w.allocate("a", "", nic))[0].Hardware
	if told.NIC == nil || told.NIC.RDMA.Ports[0].State != machine.PortActive || !told.NIC.Health.OK() {
		t.Errorf("told of %+v", told.NIC)
	}
	w.must(w.Start("a"))
	w.look()
	if now := w.first(); !now.Away || now.RDMA.Ports[0].State != machine.PortActive {
		t.Errorf("published as %+v", now)
	}
}

// Of a NIC that others share, and of an RDMA device, nothing moves.
func TestWhatStaysWithTheHost(t *testing.T) {
	w := newWorldOf(t, "hgx-4nic")
	nic := w.first()
	var pairs []string
	for _, d := range w.m.Machine().Devices() {
		if d.Kind == machine.KindPair && d.NIC.Address == nic.Address {
			pairs = append(pairs, d.Name)
		}
	}
	if len(pairs) != 2 {
		t.Fatalf("pairs of the NIC: %q", pairs)
	}
	a, b := w.allocate("a", "", pairs[0]), w.allocate("b", "", pairs[1])
	for _, d := range []claim.Device{w.prepare(a)[0], w.prepare(b)[0]} {
		if d.NIC.InPod || d.NIC.Interface != nic.Netdevs[0].Name || d.NIC.Closeness != machine.ClosenessPIX || d.UUID == "" {
			t.Errorf("told %+v", d.NIC)
		}
	}
	w.check("a", "b")
	w.refused(w.allocate("c", "", "rdma-"+nic.Address.Label()), failure.Conflict, "held for claim default/", "lanes")
	w.unprepare(a)
	w.unprepare(b)
	c, d := w.allocate("c", "", "rdma-"+nic.Address.Label()), w.allocate("d", "", "rdma-"+nic.Address.Label())
	w.prepare(c)
	w.prepare(d)
	if orders, err := w.Orders("c"); err != nil || len(orders) > 0 {
		t.Errorf("orders %+v, %v", orders, err)
	}
	w.check("c", "d")
}

// In exclusive mode the RDMA device goes along; where it stays, no container can use it.
func TestExclusiveRDMA(t *testing.T) {
	w := newWorld(t)
	w.must(w.Machine.SetRDMAExclusive(true))
	w.must(w.SettleNICs(t.Context()))
	w.refused(w.allocate("r", "", "rdma-"+w.first().Address.Label()), failure.Unsupported, "netns shared", "mlx5")
	w.refused(w.allocate("k", nicConfig(`"keepHostNetwork":true`), w.first().Name()), failure.Unsupported, "without keepHostNetwork")
	a := w.started("a", "", w.first().Name())
	orders, err := w.Orders("a")
	if err != nil || len(orders) != 1 || !orders[0].Home.RDMAMoves || !slices.ContainsFunc(orders[0].Nodes, isVerbs) {
		t.Errorf("orders %+v, %v", orders, err)
	}
	w.must(w.End("a"))
	w.unprepare(a)
	w.check()
}

// However many NICs a claim has, its record is written once: what they are is all that
// there is to know of them.
func TestNICsAreRecordedAtOnce(t *testing.T) {
	w := newWorld(t)
	var devices []string
	for i := range 8 {
		devices = append(devices, w.nic(i).Name())
	}
	a := w.allocate("a", "", devices...)
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	w.must(err)
	defer unix.Close(watch)
	_, err = unix.InotifyAddWatch(watch, filepath.Join(w.Dir, "claims"), unix.IN_MOVED_FROM|unix.IN_MOVED_TO) // else equal ones are merged
	w.must(err)
	w.prepare(a)
	events := make([]byte, 1<<16)
	n, err := unix.Read(watch, events)
	w.must(err)
	if writes := bytes.Count(events[:n], []byte("uid-a.json\x00")); writes != 1 {
		t.Errorf("%d writes of the record", writes)
	}
	w.check("a")
}

func TestVFs(t *testing.T) {
	w := newWorldOf(t, "sriov")
	var names []string
	for _, d := range w.m.Machine().Devices() {
		if d.Kind == machine.KindVF {
			names = append(names, d.Name)
		}
	}
	if len(names) < 2 {
		t.Fatalf("VFs: %q", names)
	}
	a, b := w.allocate("a", "", names[0]), w.allocate("b", "", names[1])
	w.prepare(a)
	w.prepare(b)
	w.must(w.Start("a"))
	w.must(w.Start("b"))
	w.restart()
	w.check("a", "b")
	w.must(w.End("a"))
	w.unprepare(a)
	w.check("b")
	w.unprepare(b)
	w.check()
}

// isVerbs says whether a character device is of an RDMA device alone, so that the hook can
// see whose it is.
func isVerbs(node string) bool { return strings.HasPrefix(node, "/dev/infiniband/uverbs") }
