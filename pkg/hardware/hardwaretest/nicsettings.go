package hardwaretest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

func isBusy(err error) bool { return errors.Is(err, failure.Busy) }

func testLink(t *testing.T, f NICFixture) {
	must(t, f.SetLink(false))
	seen := func(ok bool) func() bool {
		return func() bool { return theNIC(t, f).Health.OK() == ok }
	}
	patiencetest.Until(t, "the NIC is seen without a link", seen(false))
	if h := theNIC(t, f).Health; h.Reason != machine.FaultLinkDown || h.Message == "" {
		t.Errorf("without a link its health is %+v", h)
	}
	must(t, f.SetLink(true))
	patiencetest.Until(t, "the NIC is seen with a link", seen(true))
}

func testDCB(t *testing.T, f NICFixture) {
	before := theNIC(t, f).DCB
	for _, want := range []machine.DCB{
		{PFC: [8]bool{3: true, 5: true}},
		{Trust: machine.TrustPCP},
		{Trust: machine.TrustDSCP, DSCP: []machine.DSCPPriority{{DSCP: 26, Priority: 3}, {DSCP: 46, Priority: 5}}},
		{Trust: machine.TrustDSCP, DSCP: []machine.DSCPPriority{{DSCP: 46, Priority: 6}}},
		{ETS: &machine.ETS{Class: [8]uint8{3: 1}, Bandwidth: [8]uint8{40, 60}, Algorithm: [8]uint8{2, 2}}},
		{}, // changes nothing
		before,
	} {
		was := theNIC(t, f).DCB
		got, err := f.NICs.SetDCB(t.Context(), f.NIC, want)
		must(t, err)
		expected := was
		if want.Lossless() {
			expected.PFC = want.PFC
		}
		if want.Trust != "" {
			expected.Trust, expected.DSCP = want.Trust, want.DSCP
		}
		if want.ETS != nil {
			expected.ETS = want.ETS
		}
		if !reflect.DeepEqual(got, expected) || !reflect.DeepEqual(theNIC(t, f).DCB, expected) {
			t.Errorf("set %+v: answered\n%+v, described\n%+v, want\n%+v", want, got, theNIC(t, f).DCB, expected)
		}
	}
}

// testDCBComesBack: a move empties the application table.
func testDCBComesBack(t *testing.T, f NICFixture) {
	before, home := theNIC(t, f).DCB, homeOf(t, f)
	must(t, f.Move(inPod, hardware.NICMove{Home: home, Name: nameInIt}))
	must(t, f.End(inPod))
	brought(t, f, home)
	if after := theNIC(t, f).DCB; !reflect.DeepEqual(after, before) {
		t.Errorf("DCB settings are %+v, they were %+v", after, before)
	}
}

func testVirtualFunctions(t *testing.T, f NICFixture) {
	n := theNIC(t, f)
	if n.MaxVFs < 3 || len(n.VFs) != 0 {
		t.Fatalf("the NIC has %d of %d virtual functions", len(n.VFs), n.MaxVFs)
	}
	set := func(count int) error { return f.NICs.SetVFs(t.Context(), f.NIC, count) }
	wantClass(t, set(n.MaxVFs+1), failure.Invalid)
	wantClass(t, set(-1), failure.Invalid)
	for range 2 {
		must(t, set(2))
	}
	n = theNIC(t, f)
	if len(n.VFs) != 2 || n.VFs[0].Index != 0 || n.VFs[1].Index != 1 || n.VFs[0].Address == n.VFs[1].Address {
		t.Fatalf("its virtual functions are %+v", n.VFs)
	}
	wantClass(t, set(3), failure.Conflict)
	wantClass(t, f.NICs.SetVFs(t.Context(), n.VFs[0].Address, 1), failure.Unsupported)
	must(t, set(0))
	if n = theNIC(t, f); len(n.VFs) != 0 {
		t.Errorf("its virtual functions are %+v", n.VFs)
	}
}

// testWatchNICs: each change is noticed, and then the stillness.
func testWatchNICs(t *testing.T, f NICFixture) {
	describeNICs(t, f) // so that it is known what is watched
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- f.NICs.WatchNICs(ctx, func() {
			select {
			case seen <- struct{}{}:
			default:
			}
		})
	}()
	home := homeOf(t, f)
	order := hardware.NICMove{Home: home, Name: nameInIt}
	// Nothing says that the watch has begun: the first is done until it is seen.
	notices(t, seen, func() { must(t, f.Move(inPod, order)); brought(t, f, home) })
	must(t, f.Move(inPod, order))
	notices(t, seen, func() {})
	brought(t, f, home)
	notices(t, seen, func() {})
	cancel()
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(patiencetest.Limit):
		t.Fatal("WatchNICs does not end with its context")
	}
}

// notices does something again and again until it is seen.
func notices(t *testing.T, seen <-chan struct{}, raise func()) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	raise()
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

// testNICConcurrency: moves, releases and looks from many goroutines.
func testNICConcurrency(t *testing.T, f NICFixture) {
	home := homeOf(t, f)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 5 {
				if err := f.Move(inPod, hardware.NICMove{Home: home, Name: nameInIt}); err != nil && !isBusy(err) {
					t.Errorf("move: %v", err)
				}
				if err := f.NICs.BringHome(t.Context(), home); err != nil && !isBusy(err) {
					t.Errorf("bringing it home: %v", err)
				}
			}
		})
		all.Go(func() {
			for range 5 {
				if _, err := f.NICs.DescribeNICs(t.Context()); err != nil {
					t.Errorf("describing: %v", err)
				}
			}
		})
	}
	all.Wait()
	brought(t, f, home)
	isHome(t, f, home)
}
