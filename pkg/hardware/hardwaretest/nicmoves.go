package hardwaretest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func testDescribeNICs(t *testing.T, f NICFixture) {
	d := describeNICs(t, f)
	if !slices.IsSortedFunc(d.NICs, func(a, b machine.NIC) int { return a.Address.Compare(b.Address) }) {
		t.Errorf("NICs are not in the order of their addresses: %+v", d.NICs)
	}
	alone, err := f.NICs.DescribeNICs(t.Context(), f.NIC)
	must(t, err)
	n := theNIC(t, f)
	if len(alone.NICs) != 1 || !reflect.DeepEqual(alone.NICs[0], n) {
		t.Errorf("alone it is described as %+v, beside others as %+v", alone.NICs, n)
	}
	if n.Withheld != "" || n.Away || n.Driver == "" || n.Vendor == "" || n.Model == "" || !n.Health.OK() {
		t.Errorf("described as %+v", n)
	}
	if len(n.Netdevs) != 1 || !n.Netdevs[0].Up || !n.Netdevs[0].Carrier || n.Netdevs[0].MAC == "" || n.Netdevs[0].MTU == 0 {
		t.Errorf("its interfaces are %+v", n.Netdevs)
	}
	if n.RDMA == nil || len(n.RDMA.Nodes) == 0 || len(n.RDMA.Ports) != 1 || n.RDMA.Ports[0].LinkLayer != machine.LinkEthernet {
		t.Errorf("its RDMA device is %+v", n.RDMA)
	}
	if len(d.RDMANodes) == 0 {
		t.Error("connection management has no character device")
	}
}

func testNICHome(t *testing.T, f NICFixture) {
	n, home := theNIC(t, f), homeOf(t, f)
	if home.Address != f.NIC || home.RDMA != n.RDMA.Name || home.RDMAMoves || !home.DCB.Lossless() {
		t.Errorf("its home is %+v", home)
	}
	d := home.Netdevs[0]
	if d.Name != n.Netdevs[0].Name || d.MAC != n.Netdevs[0].MAC || d.MTU != n.Netdevs[0].MTU || !d.Up || len(d.Addresses) == 0 || len(d.Routes) == 0 {
		t.Errorf("its interface's home is %+v", d)
	}
	_, err := f.NICs.NICHome(t.Context(), machine.Address{Domain: 0xffff, Bus: 0xff})
	wantClass(t, err, failure.Absent)
}

func testThereAndBack(t *testing.T, f NICFixture) {
	home := homeOf(t, f)
	must(t, f.NICs.BringHome(t.Context(), home)) // it is there
	isHome(t, f, home)
	order := hardware.NICMove{Home: home, Name: nameInIt, MTU: 1400, Addresses: []string{"192.168.77.1/24"}}
	for range 2 {
		must(t, f.Move(inPod, order))
	}
	n := theNIC(t, f)
	if !n.Away || len(n.Netdevs) != 0 || n.Withheld != "" || !n.Health.OK() || n.Driver == "" {
		t.Errorf("while it is away it is described as %+v", n)
	}
	_, err := f.NICs.NICHome(t.Context(), f.NIC)
	wantClass(t, err, failure.Conflict)
	for range 2 {
		brought(t, f, home)
		isHome(t, f, home)
	}
	if n := theNIC(t, f); n.Away || len(n.Netdevs) != 1 {
		t.Errorf("back home it is described as %+v", n)
	}
	must(t, f.Move(inPod, hardware.NICMove{Home: home})) // as it is on the host
	brought(t, f, home)
	isHome(t, f, home)
}

func testNamespaceEnds(t *testing.T, f NICFixture) {
	home := homeOf(t, f)
	must(t, f.Move(inPod, hardware.NICMove{Home: home, Name: nameInIt}))
	must(t, f.End(inPod))
	brought(t, f, home)
	isHome(t, f, home)
}

// testNamesTaken: what has its Pod's name on the host is no hindrance, what has its own is.
func testNamesTaken(t *testing.T, f NICFixture) {
	home := homeOf(t, f)
	own := home.Netdevs[0].Name
	must(t, f.Move(inPod, hardware.NICMove{Home: home, Name: nameInIt}))
	must(t, f.TakeName(nameInIt))
	must(t, f.TakeName(own))
	must(t, f.End(inPod))
	for range 2 {
		err := f.NICs.BringHome(t.Context(), home)
		for i := 0; i < 1000 && isBusy(err); i++ {
			err = f.NICs.BringHome(t.Context(), home)
		}
		wantClass(t, err, failure.Conflict)
	}
	must(t, f.GiveName(own))
	brought(t, f, home)
	must(t, f.GiveName(nameInIt))
	isHome(t, f, home)
}

func testRDMAExclusive(t *testing.T, f NICFixture) {
	if describeNICs(t, f).RDMAExclusive {
		t.Error("described as exclusive in shared mode")
	}
	must(t, f.SetExclusive(true))
	if !describeNICs(t, f).RDMAExclusive {
		t.Error("described as shared in exclusive mode")
	}
	home := homeOf(t, f)
	if !home.RDMAMoves {
		t.Errorf("its home is %+v", home)
	}
	for _, end := range []bool{false, true} {
		must(t, f.Move(inPod, hardware.NICMove{Home: home, Name: nameInIt}))
		if n := theNIC(t, f); !n.Away || n.Withheld != "" {
			t.Errorf("while it is away it is described as %+v", n)
		}
		if end {
			must(t, f.End(inPod))
		}
		brought(t, f, home)
		isHome(t, f, home)
		if n := theNIC(t, f); n.RDMA == nil || n.RDMA.Name != home.RDMA || n.Away {
			t.Errorf("back home it is described as %+v", n)
		}
	}
	must(t, f.SetExclusive(false))
}

func testNICGone(t *testing.T, f NICFixture) {
	home := homeOf(t, f)
	must(t, f.Move(inPod, hardware.NICMove{Home: home, Name: nameInIt}))
	must(t, f.Unplug())
	d := describeNICs(t, f)
	if slices.ContainsFunc(d.NICs, func(n machine.NIC) bool { return n.Address == f.NIC }) {
		t.Error("it is described, although it was pulled out")
	}
	_, err := f.NICs.NICHome(t.Context(), f.NIC)
	wantClass(t, err, failure.Absent)
	wantClass(t, f.NICs.BringHome(t.Context(), home), failure.Absent)
	_, err = f.NICs.SetDCB(t.Context(), f.NIC, machine.DCB{Trust: machine.TrustPCP})
	wantClass(t, err, failure.Absent)
	must(t, f.Plug())
	if n := theNIC(t, f); n.Away {
		t.Errorf("plugged in again it is described as %+v", n)
	}
}

func testMoveRefused(t *testing.T, f NICFixture) {
	home := homeOf(t, f)
	wantClass(t, f.Move(inPod, hardware.NICMove{Home: home, MTU: 65535}), failure.Invalid)
	isHome(t, f, home)
	must(t, f.Move(inPod, hardware.NICMove{Home: home, Name: nameInIt}))
	wantClass(t, f.Move("another", hardware.NICMove{Home: home, Name: nameInIt}), failure.Conflict)
	brought(t, f, home)
	isHome(t, f, home)
}
