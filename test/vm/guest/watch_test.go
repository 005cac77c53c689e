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

// TestWatch: whatever happens to NICs is told. (What is told is that a look is
// worthwhile.)
func TestWatch(t *testing.T) {
	near, pf := topology.Near, fmt.Sprintf("/sys/bus/pci/devices/%s", addresses[topology.Near.Name])
	disturbs(t, near)
	exclusive(t)
	nics := newAdapter(t)
	_, err := nics.DescribeNICs(t.Context())
	must(t, err)
	w := watch(t, nics)
	address, err := netlink.ParseAddr("10.55.0.1/24")
	must(t, err)
	var p *pod
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"link down", func() { must(t, netlink.LinkSetDown(link(t, near.Name))) }},
		{"link up", func() { must(t, netlink.LinkSetUp(link(t, near.Name))) }},
		{"MTU", func() { must(t, netlink.LinkSetMTU(link(t, near.Name), 4000)) }},
		{"address", func() { must(t, netlink.AddrAdd(link(t, near.Name), address)) }},
		{"address gone", func() { must(t, netlink.AddrDel(link(t, near.Name), address)) }},
		{"DCB", func() {
			_, err := nics.SetDCB(t.Context(), addresses[near.Name], lossless)
			must(t, err)
		}},
		{"RDMA device gone", func() { must(t, netlink.RdmaLinkDel(near.RDMA)) }},
		{"RDMA device", func() { must(t, netlink.RdmaLinkAdd(near.RDMA, "fakeroce", near.Name)) }},
		{"VFs", func() { write(t, "1", pf, "sriov_numvfs") }},
		{"no VFs", func() { write(t, "0", pf, "sriov_numvfs") }},
		{"interface into a Pod", func() { p = newPod(t); p.takeNetdev(t, near.Name) }},
		{"RDMA device into the Pod", func() { p.takeRDMA(t, near.RDMA) }},
		{"the Pod's end", func() { p.end() }},
		{"NIC taken out", func() { write(t, "1", pf, "remove") }},
		{"NIC put in", func() { write(t, "1", "/sys/bus/pci/rescan") }},
	} {
		w.quiet(t)
		step.do()
		select {
		case <-w.told:
		case <-time.After(patience):
			t.Errorf("%s: nothing was told", step.what)
		}
	}
}

// TestWatchIsCalm: the interfaces of Pods that have no NIC come and go untold.
func TestWatchIsCalm(t *testing.T) {
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
