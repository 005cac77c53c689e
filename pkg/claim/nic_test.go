package claim_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
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

// The Pod's end takes time: until its namespace has ended the claim is not released, and
// an event of the kernel's has the release go on at once.
func TestReleaseWaitsForTheNamespace(t *testing.T) {
	w := newWorld(t)
	a := w.started("a", "", w.first().Name())
	w.must(w.Machine.SealNamespace(claimtest.Namespace("a")))
	err := w.m.Unprepare(t.Context(), claimtest.Reference(a))
	if !errors.Is(err, failure.Busy) || len(w.Waits) != 1 || !strings.Contains(w.Waits[0].Error(), "nic-") {
		t.Fatalf("released: %v, told %v", err, w.Waits)
	}
	w.refused(w.allocate("b", "", w.first().Name()), failure.Conflict, "held for claim default/a")

	w.BusyPatience = time.Hour
	w.restart()
	done := make(chan error)
	told := make(chan struct{})
	w.m.Waiting = func(journal.Claim, error) { close(told) }
	go func() { done <- w.m.Unprepare(t.Context(), claimtest.Reference(a)) }()
	<-told
	w.must(w.End("a"))
	w.m.NICsChanged()
	w.must(<-done)
	w.check()
}

// While another interface has the NIC's name the claim is not released, and who it is is
// told.
func TestNameTaken(t *testing.T) {
	w := newWorld(t)
	a := w.started("a", nicConfig(`"interfaceName":"net1"`), w.first().Name())
	name := w.first().Netdevs[0].Name
	w.must(w.Machine.TakeName(name))
	w.must(w.End("a"))
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(a)); !errors.Is(err, failure.Busy) || !strings.Contains(err.Error(), name) {
		t.Fatalf("released: %v", err)
	}
	if problems := w.restart(); len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), name) {
		t.Errorf("after a restart: %v", problems)
	}
	w.must(w.Machine.GiveName(name))
	if problems := w.restart(); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	w.check()
}

// The agent was dead while the Pod went.
func TestPodGoesWithoutAgent(t *testing.T) {
	w := newWorld(t)
	w.started("a", "", w.first().Name())
	w.must(w.End("a"))
	w.must(w.Delete("a"))
	w.restart()
	w.check("a") // the kubelet has its time
	r, err := w.m.Reconcile(t.Context())
	for err == nil && len(r.Released) == 0 && len(r.Problems) == 0 {
		r, err = w.m.Reconcile(t.Context())
	}
	w.must(err)
	w.check()
}

func TestRebootLosesNICs(t *testing.T) {
	w := newWorld(t)
	a := w.started("a", "", w.first().Name())
	w.must(w.Machine.Reboot())
	w.must(os.RemoveAll(filepath.Join(w.Dir, "cdi")))
	w.restart()
	w.prepare(a)
	w.check("a")
	w.unprepare(a)
	w.check()
}

// The record is damaged while the NIC is in the Pod: the copy brings it home.
func TestDamagedRecordOfNIC(t *testing.T) {
	w := newWorld(t)
	a := w.started("a", "", w.first().Name())
	w.damage(w.record("a"), "{")
	w.look()
	if now := w.first(); len(now.Netdevs) == 0 || !now.Health.OK() {
		t.Errorf("published as %+v", now)
	}
	w.unprepare(a)
	w.check()
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

// restless is NICs of which one does not come home, while events about NICs never end.
type restless struct {
	hardware.NICs
	m     **claim.Manager
	tries int
}

func (r *restless) BringHome(context.Context, machine.NICHome) error {
	r.tries++
	(*r.m).NICsChanged()
	return failure.New(failure.Busy, "it is on its way")
}

// However many events there are, a release that waits tries but a few times.
func TestEventsInCrowds(t *testing.T) {
	w := newWorld(t)
	r := &restless{NICs: w.Machine.NICs(), m: &w.m}
	w.World.NICs, w.BusyPatience = r, 300*time.Millisecond
	w.restart()
	a := w.prepared("a", "", w.first().Name())
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(a)); !errors.Is(err, failure.Busy) || r.tries < 2 || r.tries > 7 {
		t.Errorf("%d tries, %v", r.tries, err)
	}
}

func TestNICVanishes(t *testing.T) {
	t.Run("before it is prepared", func(t *testing.T) {
		w := newWorld(t)
		a := w.allocate("a", "", w.first().Name())
		w.must(w.Machine.Unplug(w.first().Address.String()))
		w.refused(a, failure.Absent, "delete the Pod")
		w.check()
	})
	t.Run("while a Pod has it", func(t *testing.T) {
		w := newWorld(t)
		a := w.started("a", "", w.first().Name())
		w.must(w.Machine.Unplug(w.first().Address.String()))
		w.refused(a, failure.Absent, "delete the Pod")
		w.unprepare(a)
		w.must(w.SettleNICs(t.Context()))
		w.check()
	})
	t.Run("taken by somebody", func(t *testing.T) {
		w := newWorld(t)
		a := w.allocate("a", "", w.first().Name())
		home, err := w.NICs.NICHome(t.Context(), w.first().Address)
		w.must(err)
		w.must(w.Machine.MoveNIC(hardware.NICMove{Home: home}, "others"))
		w.refused(a, failure.Conflict, "others", "give it back")
		w.look()
		w.refused(a, failure.Busy, "no claim has it")
		w.must(w.NICs.BringHome(t.Context(), home))
		w.look()
		w.prepare(a)
		w.check("a")
	})
}

// A failed step takes back the NIC as well, and the GPU of a pair.
func TestPairIsRolledBack(t *testing.T) {
	w := newWorld(t)
	pair := pairOf(w)
	a := w.allocate("a", `{"apiVersion":"dovetail.dev/v1alpha1","kind":"PairConfig","gpu":{"computeMode":"ExclusiveProcess"}}`, pair.Name)
	w.must(w.Machine.Fail(pair.GPU.UUID, "nvmlDeviceSetComputeMode", simulator.Failure{Times: 1, Error: simulator.FailureUnknown}))
	if _, err := w.m.Prepare(t.Context(), a); err == nil {
		t.Fatal("no error")
	}
	w.check()
	d := w.prepare(a)
	if d[0].UUID != pair.GPU.UUID || d[0].NIC.Closeness != machine.ClosenessPIX {
		t.Errorf("told %+v", d[0])
	}
	w.must(w.Start("a"))
	w.check("a")
	w.refused(w.allocate("b", "", pair.GPU.Name()), failure.Conflict, "held for claim default/a")
	w.refused(w.allocate("b", "", pair.NIC.Name()), failure.Conflict, "held for claim default/a")
	w.must(w.End("a"))
	w.unprepare(a)
	w.check()
}

func pairOf(w *world) machine.Device {
	devices := w.m.Machine().Devices()
	return devices[slices.IndexFunc(devices, func(d machine.Device) bool { return d.Kind == machine.KindPair })]
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

// NCCL is told where declared pairs sit, as long as the claim is prepared.
func TestTopologyIsWritten(t *testing.T) {
	w := newWorldOf(t, "flat-vm")
	now := w.m.Machine()
	w.Network.Pairs = []machine.DeclaredPair{{GPU: now.GPUs[0].Address, NIC: w.nic(1).Address}}
	w.look()
	name := "pair-" + now.GPUs[0].Address.Label() + "-" + w.nic(1).Address.Label()
	a := w.prepared("a", "", name)
	file := filepath.Join(w.Dir, "nccl", "uid-a.xml")
	content, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(content), now.GPUs[0].Address.String()) || !strings.Contains(string(content), w.nic(1).Address.String()) {
		t.Errorf("%s, %v", content, err)
	}
	spec, err := os.ReadFile(w.specification("a"))
	if err != nil || !strings.Contains(string(spec), file) || !strings.Contains(string(spec), "NCCL_TOPO_FILE=") {
		t.Errorf("%s, %v", spec, err)
	}
	w.must(os.Remove(file))
	w.prepare(a)
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	w.unprepare(a)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	w.check()
}

// Where nobody looks after NICs any more, what is on record of them stays until somebody
// does.
func TestWithoutNICs(t *testing.T) {
	w := newWorld(t)
	a := w.started("a", "", w.first().Name())
	w.m.NICs = claim.New(claim.Config{}).NICs
	if err := w.m.Unprepare(t.Context(), claimtest.Reference(a)); !errors.Is(err, failure.Unsupported) || !strings.Contains(err.Error(), "nics.enabled") {
		t.Errorf("error %v", err)
	}
	w.refused(w.allocate("b", "", w.nic(1).Name()), failure.Unsupported, "claim GPUs alone")
	w.restart()
	w.check()
}

// isVerbs says whether a character device is of an RDMA device alone, so that the hook can
// see whose it is.
func isVerbs(node string) bool { return strings.HasPrefix(node, "/dev/infiniband/uverbs") }
