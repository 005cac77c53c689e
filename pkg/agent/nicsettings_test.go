package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestNICSettings(t *testing.T) {
	m := simulatortest.New(t, "sriov")
	nics := m.NICs()
	describe := func() *machine.Machine {
		t.Helper()
		d, err := nics.DescribeNICs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return &machine.Machine{NICs: d.NICs}
	}
	before := describe()
	var nic *machine.NIC
	for i := range before.NICs {
		if n := &before.NICs[i]; n.Offered() && n.MaxVFs >= 2 && len(n.VFs) == 0 {
			nic = n
			break
		}
	}
	if nic == nil {
		t.Fatal("no NIC that can have virtual functions")
	}
	held := errors.New("held for claim team/train")
	var failures []string
	s := &nicSettings{
		nics: nics,
		want: machine.Network{
			VFs:      []machine.VFCount{{NIC: nic.Address, Count: 2}},
			Lossless: &machine.DCB{PFC: [8]bool{5: true}, Trust: machine.TrustDSCP, DSCP: []machine.DSCPPriority{{DSCP: 46, Priority: 5}}},
		},
		unclaimed: func(context.Context, *machine.NIC, func() error) error { return held },
		failed:    func(_ *machine.NIC, err error) { failures = append(failures, err.Error()) },
	}
	if !s.Settle(t.Context(), before) {
		t.Error("no port was set")
	}
	s.Settle(t.Context(), describe())
	if len(failures) != 1 || !strings.Contains(failures[0], "virtualFunctions[0].count: 2: "+held.Error()) {
		t.Errorf("told %q, want the field, and what holds the NIC, once", failures)
	}
	for _, n := range describe().NICs {
		if missing := n.DCB.Misses(s.want.Lossless); n.Offered() && missing != nil {
			t.Errorf("NIC %s: %v", n.Address, missing)
		}
	}

	s.unclaimed = func(_ context.Context, _ *machine.NIC, change func() error) error { return change() }
	if !s.Settle(t.Context(), describe()) {
		t.Error("no virtual functions were made")
	}
	now := describe()
	if made := now.NIC(nic.Address); len(made.VFs) != 2 {
		t.Errorf("NIC %s has %d virtual functions, want 2", nic.Address, len(made.VFs))
	}
	if s.Settle(t.Context(), now) || len(failures) != 1 {
		t.Errorf("something was changed again, or told: %q", failures)
	}
	s.want.VFs[0].Count = 1 // those that are there may be in use
	if s.Settle(t.Context(), describe()) || errors.Is(s.nics.SetVFs(t.Context(), nic.Address, 2), failure.Conflict) {
		t.Error("virtual functions were taken away")
	}
}

// What a port refuses is told with the field that asks for it. More virtual functions than
// a card can have are not asked for: they are a fault of the node.
func TestNICSettingsThatCannotBe(t *testing.T) {
	nic := machine.NIC{Address: machine.Address{Bus: 0x1a}, RDMA: &machine.RDMADevice{Name: "mlx5_0"}, MaxVFs: 4}
	var failures []string
	s := &nicSettings{
		nics: &stubborn{refuses: failure.New(failure.Unsupported, "the driver has none")},
		want: machine.Network{
			VFs: []machine.VFCount{{NIC: nic.Address, Count: 5}}, Lossless: &machine.DCB{PFC: [8]bool{3: true}},
		},
		unclaimed: func(context.Context, *machine.NIC, func() error) error {
			t.Error("virtual functions were to be made")
			return nil
		},
		failed: func(_ *machine.NIC, err error) { failures = append(failures, err.Error()) },
	}
	if s.Settle(t.Context(), &machine.Machine{NICs: []machine.NIC{nic}}) || len(failures) != 1 || failures[0] != "lossless: the driver has none" {
		t.Errorf("told %q", failures)
	}
}

// stubborn is NICs whose ports take everything and keep nothing, or refuse everything.
type stubborn struct {
	hardware.NICs
	refuses error
	calls   int
}

func (s *stubborn) SetDCB(_ context.Context, _ machine.Address, want machine.DCB) (machine.DCB, error) {
	s.calls++
	return want, s.refuses
}

// A port that somebody else sets otherwise again and again is not fought with every event.
func TestPortThatIsSetOtherwise(t *testing.T) {
	nic := machine.NIC{Address: machine.Address{Bus: 0x1a}, RDMA: &machine.RDMADevice{Name: "mlx5_0"}}
	nics, clock := &stubborn{}, time.Unix(0, 0)
	s := &nicSettings{
		nics: nics, want: machine.Network{Lossless: &machine.DCB{PFC: [8]bool{3: true}}},
		failed: func(_ *machine.NIC, err error) { t.Errorf("told: %v", err) },
		now:    func() time.Time { return clock },
	}
	for range 60 { // a look each second
		s.Settle(t.Context(), &machine.Machine{NICs: []machine.NIC{nic}})
		clock = clock.Add(time.Second)
	}
	if nics.calls != 2 {
		t.Errorf("it was set %d times in a minute", nics.calls)
	}
}
