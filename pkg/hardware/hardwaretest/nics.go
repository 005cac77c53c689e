package hardwaretest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// NICFixture is an implementation of hardware.NICs, and the hands that change the machine
// which it must see.
type NICFixture struct {
	NICs hardware.NICs
	// NIC is one with a single interface and an RDMA device over Ethernet, which is up and
	// has addresses, routes and DCB settings.
	NIC machine.Address
	// Move does what dovetail-hook does. The namespace is there once something is in it.
	Move func(namespace string, order hardware.NICMove) error
	// End ends a namespace, so that the kernel gives back what is in it.
	End func(namespace string) error
	// TakeName makes another interface on the host, and GiveName removes it.
	TakeName, GiveName func(name string) error
	// SetLink plugs the NIC's cable in, or pulls it out.
	SetLink func(there bool) error
	// Unplug takes the NIC off the bus, and Plug puts it back.
	Unplug, Plug func() error
	// SetExclusive sets the mode of the RDMA subsystem.
	SetExclusive func(bool) error
	// Lacks has tests that the fixture cannot serve, each with the reason.
	Lacks map[string]string
}

// TestNICs runs the suite. make makes a fixture, and cleans up after itself.
func TestNICs(t *testing.T, make func(t *testing.T) NICFixture) {
	for name, test := range map[string]func(*testing.T, NICFixture){
		"Describe":         testDescribeNICs,
		"Home":             testNICHome,
		"ThereAndBack":     testThereAndBack,
		"NamespaceEnds":    testNamespaceEnds,
		"NamesTaken":       testNamesTaken,
		"RDMAExclusive":    testRDMAExclusive,
		"NICGone":          testNICGone,
		"Link":             testLink,
		"DCB":              testDCB,
		"DCBComesBack":     testDCBComesBack,
		"VirtualFunctions": testVirtualFunctions,
		"MoveRefused":      testMoveRefused,
		"WatchNICs":        testWatchNICs,
		"NICConcurrency":   testNICConcurrency,
	} {
		t.Run(name, func(t *testing.T) {
			f := make(t)
			if why, lacks := f.Lacks[name]; lacks {
				t.Skip("not run: " + why)
			}
			test(t, f)
		})
	}
}

// inPod is a namespace's name, and what the NIC is called there.
const (
	inPod    = "pod"
	nameInIt = "net1"
)

func describeNICs(t *testing.T, f NICFixture) hardware.NICDescription {
	t.Helper()
	d, err := f.NICs.DescribeNICs(t.Context())
	must(t, err)
	return d
}

// theNIC is the fixture's, as it is described.
func theNIC(t *testing.T, f NICFixture) machine.NIC {
	t.Helper()
	d := describeNICs(t, f)
	i := slices.IndexFunc(d.NICs, func(n machine.NIC) bool { return n.Address == f.NIC })
	if i < 0 {
		t.Fatalf("NIC %s is not described: %+v", f.NIC, d)
	}
	return d.NICs[i]
}

func homeOf(t *testing.T, f NICFixture) machine.NICHome {
	t.Helper()
	home, err := f.NICs.NICHome(t.Context(), f.NIC)
	must(t, err)
	return home
}

// isHome compares all that can be lost with what it was.
func isHome(t *testing.T, f NICFixture, want machine.NICHome) {
	t.Helper()
	if got := homeOf(t, f); !reflect.DeepEqual(sorted(got), sorted(want)) {
		t.Errorf("the NIC's home is\n%+v, it was\n%+v", got, want)
	}
}

// sorted brings what has no order into one.
func sorted(home machine.NICHome) machine.NICHome {
	home.Netdevs = slices.Clone(home.Netdevs)
	for i := range home.Netdevs {
		d := &home.Netdevs[i]
		d.Addresses, d.Routes = slices.Clone(d.Addresses), slices.Clone(d.Routes)
		slices.Sort(d.Addresses)
		slices.SortFunc(d.Routes, func(a, b machine.Route) int {
			return slices.Compare([]string{a.To, a.Via, a.From}, []string{b.To, b.Via, b.From})
		})
	}
	return home
}

func wantClass(t *testing.T, err, class error) {
	t.Helper()
	if !errors.Is(err, class) || failure.ClassOf(err) == nil {
		t.Errorf("error %v, want one that is %v", err, class)
	}
}

// brought waits until the NIC is home: a kernel gives back what an ending namespace had
// when it finds the time.
func brought(t *testing.T, f NICFixture, home machine.NICHome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patiencetest.Limit)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := f.NICs.BringHome(ctx, home)
		if err == nil {
			return
		}
		if !errors.Is(err, failure.Busy) {
			t.Fatalf("bringing it home: %v", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("it does not come home: %v", err)
		}
	}
}
