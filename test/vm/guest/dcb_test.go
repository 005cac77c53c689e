package guest

import (
	"context"
	"reflect"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// TestSetDCB sets PFC, trust with its code points, and ETS, and reads them back.
func TestSetDCB(t *testing.T) {
	nic := lend(t)
	anew(t, nic, nil)
	nics, at := newAdapter(t), addresses[nic.Name]
	before, _ := describe(t, nics)
	if before[nic.Name].DCB.Lossless() {
		t.Fatalf("it is lossless before: %+v", before[nic.Name].DCB)
	}
	others := lossless
	others.PFC, others.DSCP = [8]bool{5: true}, []machine.DSCPPriority{{DSCP: 34, Priority: 5}}
	for _, want := range []machine.DCB{lossless, lossless, others} {
		got, err := nics.SetDCB(t.Context(), at, want)
		must(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("it has\n%+v\nwant\n%+v", got, want)
		}
		found, _ := describe(t, nics)
		if got := found[nic.Name].DCB; !reflect.DeepEqual(got, want) {
			t.Errorf("described as\n%+v\nwant\n%+v", got, want)
		}
	}
	after, _ := describe(t, nics)
	for _, n := range topology.NICs {
		if n != nic && !reflect.DeepEqual(after[n.Name].DCB, before[n.Name].DCB) {
			t.Errorf("%s had %+v, and now %+v", n.Name, before[n.Name].DCB, after[n.Name].DCB)
		}
	}
}

// anew gives a NIC a new RDMA device, and with it a port without settings, made with
// parameters of fakeroce's; until the test ends.
func anew(t *testing.T, n topology.NIC, parameters map[string]string) {
	t.Helper()
	const of = "/sys/module/fakeroce/parameters"
	make := func() {
		must(t, netlink.RdmaLinkDel(n.RDMA))
		clearApplications(t, n) // brings it home, with a new one
	}
	for name, value := range parameters {
		was := read(t, of, name)
		write(t, value, of, name)
		defer func() { write(t, was, of, name) }()
	}
	make()
	t.Cleanup(make)
}

// clearApplications empties the port's application table, which is the interface's own.
func clearApplications(t *testing.T, n topology.NIC) {
	t.Helper()
	p := newPod(t)
	p.takeNetdev(t, n.Name)
	p.netlink(t, func(h *netlink.Handle) {
		l, err := h.LinkByName(n.Name)
		must(t, err)
		must(t, h.LinkSetNsPid(l, 1))
	})
	p.end()
	must(t, goHome(n))
}

// TestSetDCBReadsBack: a port that takes less than it was given without a word is found
// out.
func TestSetDCBReadsBack(t *testing.T) {
	nic := lend(t)
	anew(t, nic, map[string]string{"pfc_classes": "1"})
	got, err := newAdapter(t).SetDCB(t.Context(), addresses[nic.Name], machine.DCB{PFC: [8]bool{3: true, 4: true}})
	checkError(t, err, failure.Conflict)
	if want := [8]bool{3: true}; got.PFC != want {
		t.Errorf("PFC is said to be %v, want %v", got.PFC, want)
	}
}

// TestTrustOrder: ports that have an order of what they trust say so, and take one.
func TestTrustOrder(t *testing.T) {
	nic := lend(t)
	anew(t, nic, map[string]string{"apptrust": "1"})
	nics, at := newAdapter(t), addresses[nic.Name]
	for _, want := range []machine.DCB{
		{Trust: machine.TrustPCP},
		{Trust: machine.TrustDSCP, DSCP: []machine.DSCPPriority{{DSCP: 26, Priority: 3}}},
		{Trust: machine.TrustPCP},
	} {
		got, err := nics.SetDCB(t.Context(), at, want)
		must(t, err)
		if got.Trust != want.Trust {
			t.Errorf("trust is %q, want %q", got.Trust, want.Trust)
		}
	}
}

// TestSetDCBUnsupported: cards without DCB, and virtual functions.
func TestSetDCBUnsupported(t *testing.T) {
	nics, pf := newAdapter(t), addresses[topology.Near.Name]
	must(t, nics.SetVFs(t.Context(), pf, 1))
	t.Cleanup(func() { must(t, nics.SetVFs(context.Background(), pf, 0)) })
	eventually(t, func() error { return haveNetdevs(pf, 1) })
	found, _ := describe(t, nics)
	vf := found[topology.Near.Name].VFs[0]
	must(t, netlink.RdmaLinkAdd("mlx5_9", "fakeroce", vf.Netdevs[0].Name))
	for _, at := range []machine.Address{addresses[topology.Uplink.Name], vf.Address} {
		_, err := nics.SetDCB(t.Context(), at, lossless)
		checkError(t, err, failure.Unsupported)
	}
}

// TestMoveEmptiesApplications: the kernel forgets what the port's trust is made of when
// the interface changes its namespace, and nothing else of DCB. So it is written down
// before.
func TestMoveEmptiesApplications(t *testing.T) {
	nic := lend(t)
	anew(t, nic, nil)
	nics := newAdapter(t)
	_, err := nics.SetDCB(t.Context(), addresses[nic.Name], lossless)
	must(t, err)
	clearApplications(t, nic)
	found, _ := describe(t, nics)
	if dcb := found[nic.Name].DCB; dcb.PFC != lossless.PFC || len(dcb.DSCP) != 0 {
		t.Errorf("after a move it is %+v", dcb)
	}
}
