package rdma_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kerneltest"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// inPod has moved the NIC into the Pod as net1, in exclusive mode.
func inPod(t *testing.T) (*world, machine.NICHome) {
	t.Helper()
	w, _ := withPod(t)
	w.kernel.SetExclusive(true)
	home := w.home()
	must(t, w.move(hardware.NICMove{Home: home, Name: "net1", MTU: 9000, Addresses: []string{"10.9.0.1/24"}}))
	return w, home
}

func (w *world) bring(home machine.NICHome) error { return w.nics.BringHome(w.t.Context(), home) }

// What a container with privileges leaves on the interface goes; what the host had stays.
func TestTidy(t *testing.T) {
	for name, test := range map[string]struct {
		host, left kernel.Link
		fails      error
		want       kernel.Link
	}{
		"left by the container": {kernel.Link{}, kernel.Link{Promiscuous: true, AllMulticast: true, XDP: 1}, nil, kernel.Link{}},
		"the host's":            {kernel.Link{Promiscuous: true, XDP: 2}, kernel.Link{XDP: 2}, nil, kernel.Link{Promiscuous: true, XDP: 2}},
		"held by a program":     {kernel.Link{}, kernel.Link{AllMulticast: true, XDP: 1}, unix.EBUSY, kernel.Link{XDP: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.both(first, "eth1", "mlx5_0", 1)
			w.kernel.AddNamespace(pod)
			w.kernel.SetLeft(kerneltest.HostPath, "eth1", test.host)
			home := w.home()
			must(t, w.move(hardware.NICMove{Home: home, Name: "net1"}))
			w.kernel.SetLeft(pod, "net1", test.left)
			if test.fails != nil {
				w.kernel.Fail("DetachXDP", test.fails)
			}
			for range 2 {
				must(t, w.bring(home))
			}
			links, _, _ := w.state(kerneltest.HostPath)
			if l := named(links, "eth1"); l.Promiscuous != test.want.Promiscuous || l.AllMulticast != test.want.AllMulticast || l.XDP != test.want.XDP {
				t.Errorf("%+v, want %+v", l, test.want)
			}
		})
	}
}

func TestNamespaceEnded(t *testing.T) {
	w, home := inPod(t)
	w.kernel.End(pod)
	must(t, w.bring(home))
	w.atHome(home)
}

// TestNamesTaken: the Pod's name is taken on the host, so that the kernel gives another.
func TestNamesTaken(t *testing.T) {
	for name, ended := range map[string]bool{"ended": true, "alive": false} {
		t.Run(name, func(t *testing.T) {
			w, home := inPod(t)
			w.kernel.AddLink(kerneltest.HostPath, kernel.Link{Name: "net1", MAC: macOf(0x77)})
			if ended {
				w.kernel.End(pod)
			}
			must(t, w.bring(home))
			w.atHome(home)
		})
	}
}

// TestOwnNameTaken: who has it is not renamed; the NIC is brought to the host all the same,
// and gets its name once it is free.
func TestOwnNameTaken(t *testing.T) {
	for name, taken := range map[string][]string{"own": {"eth1"}, "both": {"eth1", "net1"}} {
		t.Run(name, func(t *testing.T) {
			w, home := inPod(t)
			for _, n := range taken {
				w.kernel.AddLink(kerneltest.HostPath, kernel.Link{Name: n, MAC: macOf(0x77)})
			}
			if err := w.bring(home); !errors.Is(err, failure.Conflict) || !strings.Contains(err.Error(), macOf(0x77)) || !strings.Contains(err.Error(), "eth1") {
				t.Fatalf("%v", err)
			}
			links, _, _ := w.state(pod)
			if len(links) != 1 {
				t.Errorf("in the Pod there are %+v", links)
			}
			w.kernel.RemoveLink(kerneltest.HostPath, "eth1")
			must(t, w.bring(home))
			w.atHome(home)
		})
	}
}

// TestNowhere: the kernel has not given it back yet.
func TestNowhere(t *testing.T) {
	w, home := inPod(t)
	w.kernel.Fail("Open pod", unix.ENOENT)
	if err := w.bring(home); !errors.Is(err, failure.Busy) || !strings.Contains(err.Error(), "when its Pod's namespace has ended") {
		t.Errorf("%v", err)
	}
	w.kernel.Fail("Open pod", unix.EPERM)
	if err := w.bring(home); !errors.Is(err, failure.Busy) || !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "could be searched") {
		t.Errorf("%v", err)
	}
	w.kernel.Fail("Open pod", nil)
	must(t, w.bring(home))
	w.atHome(home)
}

func TestPulledOut(t *testing.T) {
	w, home := inPod(t)
	w.remove(first)
	if err := w.bring(home); !errors.Is(err, failure.Absent) {
		t.Errorf("%v", err)
	}
}

// TestHalfway: a release that failed midway is finished by the next.
func TestHalfway(t *testing.T) {
	for _, call := range []string{"MoveRDMA", "MoveLink", "SetUp", "SetMTU", "AddAddress", "AddRoute", "SetDCB"} {
		t.Run(call, func(t *testing.T) {
			w, home := inPod(t)
			w.kernel.Fail(call, unix.EIO)
			if err := w.bring(home); err == nil {
				t.Fatal("no error")
			}
			w.kernel.Fail(call, nil)
			must(t, w.bring(home))
			w.atHome(home)
		})
	}
}

// TestNoIPv6: where IPv6 is disabled and cannot be enabled, the release waits for who can
// do it, and goes on then.
func TestNoIPv6(t *testing.T) {
	w, home := inPod(t)
	w.kernel.FailIn(kerneltest.HostPath, "AddAddress", unix.EACCES)
	w.kernel.FailIn(kerneltest.HostPath, "SetSysctl", unix.EROFS)
	err := w.bring(home)
	if !errors.Is(err, failure.Busy) || !strings.Contains(err.Error(), "on eth1: IPv6 is disabled on it: run `sysctl -w net/ipv6/conf/eth1/disable_ipv6=0`") {
		t.Errorf("%v", err)
	}
	w.kernel.FailIn(kerneltest.HostPath, "AddAddress", nil)
	must(t, w.bring(home))
	w.atHome(home)
}

// TestForeignAddress: an interface that has taken on the NIC's hardware address is not it.
func TestForeignAddress(t *testing.T) {
	w, home := inPod(t)
	w.kernel.AddLink(kerneltest.HostPath, kernel.Link{Name: "mac0", MAC: macOf(1), Kind: "macvlan"})
	w.kernel.AddLink(kerneltest.HostPath, kernel.Link{Name: "eth7", MAC: macOf(1), Parent: "0000:7a:00.0"})
	must(t, w.bring(home))
	w.atHome(home)
}

// TestChangedAddress: a container may give the NIC another hardware address, with which the
// next one does not get it.
func TestChangedAddress(t *testing.T) {
	changed := func(t *testing.T) (*world, machine.NICHome) {
		w, home := inPod(t)
		w.in(pod, func(n kernel.Namespace) {
			links, err := n.Links()
			must(t, err)
			index := named(links, "net1").Index
			must(t, errors.Join(n.SetUp(index, false), n.SetMAC(index, macOf(0x55)), n.SetUp(index, true)))
		})
		return w, home
	}
	t.Run("the Pod's namespace is there", func(t *testing.T) {
		w, home := changed(t)
		must(t, w.bring(home))
		w.atHome(home)
	})
	t.Run("it has ended", func(t *testing.T) {
		w, home := changed(t)
		w.kernel.End(pod)
		must(t, w.bring(home))
		w.atHome(home)
	})
	t.Run("by the NIC of a VF", func(t *testing.T) {
		w, home := changed(t)
		w.kernel.Fail("SetMAC", unix.EADDRNOTAVAIL)
		must(t, w.bring(home))
		home.Netdevs[0].MAC = macOf(0x55)
		w.atHome(home)
	})
}

func TestDownStaysDown(t *testing.T) {
	w, _ := withPod(t)
	w.onHost(func(host kernel.Namespace) {
		links, err := host.Links()
		must(t, err)
		must(t, host.SetUp(named(links, "eth1").Index, false))
	})
	home := w.home()
	must(t, w.move(hardware.NICMove{Home: home}))
	if links, _, _ := w.state(pod); !named(links, "eth1").Up {
		t.Error("in the Pod it is down")
	}
	must(t, w.bring(home))
	w.atHome(home)
}

// TestSideBySide: moves to and fro from many goroutines, of two NICs.
func TestSideBySide(t *testing.T) {
	w, home := withPod(t)
	w.both("0000:2a:00.0", "eth2", "mlx5_1", 2)
	other, err := w.nics.NICHome(t.Context(), at(t, "0000:2a:00.0"))
	must(t, err)
	var all sync.WaitGroup
	for _, h := range []machine.NICHome{home, other} {
		for range 4 {
			all.Go(func() {
				for range 20 {
					if err := w.move(hardware.NICMove{Home: h}); err != nil {
						t.Error(err)
					}
					if err := w.bring(h); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	w.atHome(home)
}
