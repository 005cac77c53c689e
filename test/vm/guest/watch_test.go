package guest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma"
	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// watcher counts what WatchNICs says.
type watcher struct{ told chan struct{} }

func watch(t *testing.T, nics *rdma.NICs) watcher {
	t.Helper()
	w := watcher{told: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- nics.WatchNICs(ctx, func() {
			select {
			case w.told <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the watch ended with %v", err)
		}
	})
	// It has begun when it tells of something.
	dummy := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "begin"}}
	eventually(t, func() error {
		must(t, netlink.LinkAdd(dummy))
		must(t, netlink.LinkDel(dummy))
		select {
		case <-w.told:
			return nil
		case <-time.After(100 * time.Millisecond):
			return fmt.Errorf("the watch does not begin")
		}
	})
	w.quiet(t)
	return w
}

// quiet waits until nothing has been told for a while, so that what is told next is of
// what is done next.
func (w watcher) quiet(t *testing.T) {
	t.Helper()
	over := time.After(patience)
	for {
		select {
		case <-w.told:
		case <-time.After(500 * time.Millisecond):
			return
		case <-over:
			t.Fatal("the watch never stops telling")
		}
	}
}

// expect waits until something is told.
func (w watcher) expect(t *testing.T, of string) {
	t.Helper()
	select {
	case <-w.told:
	case <-time.After(patience):
		t.Errorf("%s: nothing was told", of)
	}
}

// step is something that happens to a NIC.
type step struct {
	what string
	do   func()
}

// TestWatch: whatever happens to NICs is told. (What is told is that a look is
// worthwhile.)
func TestWatch(t *testing.T) {
	nic := lend(t)
	pf := fmt.Sprintf("/sys/bus/pci/devices/%s", addresses[nic.Name])
	exclusive(t)
	nics := newAdapter(t)
	_, err := nics.DescribeNICs(t.Context())
	must(t, err)
	w := watch(t, nics)
	address, err := netlink.ParseAddr("10.55.0.1/24")
	must(t, err)
	var p *pod
	for _, step := range []step{
		{"link down", func() { must(t, netlink.LinkSetDown(link(t, nic.Name))) }},
		{"link up", func() { must(t, netlink.LinkSetUp(link(t, nic.Name))) }},
		{"MTU", func() { must(t, netlink.LinkSetMTU(link(t, nic.Name), 4000)) }},
		{"address", func() { must(t, netlink.AddrAdd(link(t, nic.Name), address)) }},
		{"address gone", func() { must(t, netlink.AddrDel(link(t, nic.Name), address)) }},
		{"DCB", func() {
			_, err := nics.SetDCB(t.Context(), addresses[nic.Name], lossless)
			must(t, err)
		}},
		{"RDMA device gone", func() { must(t, netlink.RdmaLinkDel(nic.RDMA)) }},
		{"RDMA device", func() { must(t, netlink.RdmaLinkAdd(nic.RDMA, "fakeroce", nic.Name)) }},
		{"interface into a Pod", func() { p = newPod(t); p.takeNetdev(t, nic.Name) }},
		{"RDMA device into the Pod", func() { p.takeRDMA(t, nic.RDMA) }},
		{"the Pod's end", func() { p.end() }},
		{"NIC taken out", func() { write(t, "1", pf, "remove") }},
		{"NIC put in", func() { write(t, "1", "/sys/bus/pci/rescan") }},
	} {
		w.follows(t, step)
	}
}

// follows wants to be told of a step.
func (w watcher) follows(t *testing.T, s step) {
	t.Helper()
	w.quiet(t)
	s.do()
	w.expect(t, s.what)
}

// TestWatchVFs: virtual functions that come and go are told.
func TestWatchVFs(t *testing.T) {
	w := watch(t, newAdapter(t))
	pf := "/sys/bus/pci/devices/" + addresses[topology.Near.Name].String()
	w.follows(t, step{"VFs", func() { write(t, "1", pf, "sriov_numvfs") }})
	w.follows(t, step{"no VFs", func() { write(t, "0", pf, "sriov_numvfs") }})
}

// TestWatchIsCalm: the interfaces of Pods that have no NIC come and go untold.
func TestWatchIsCalm(t *testing.T) {
	settled(t, topology.NICs...)
	w := watch(t, newAdapter(t))
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "veth9"}, PeerName: "veth10"}
	must(t, netlink.LinkAdd(veth))
	must(t, netlink.LinkSetUp(veth))
	must(t, netlink.LinkDel(veth))
	select {
	case <-w.told:
		t.Error("a veth is told of")
	case <-time.After(time.Second):
	}
}
