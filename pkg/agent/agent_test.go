package agent

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func TestGateWaitsForThoseInside(t *testing.T) {
	var g gate
	if err := g.enter(); err != nil {
		t.Fatal(err)
	}
	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.close(hurried); !errors.Is(err, context.Canceled) {
		t.Errorf("closed with somebody inside: %v", err)
	}
	if err := g.enter(); !errors.Is(err, errClosed) {
		t.Errorf("entered a closed gate: %v", err)
	}
	g.leave()
	if err := g.close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDeadSocketsAreRemoved(t *testing.T) {
	registry, plugin := t.TempDir(), t.TempDir()
	dead := filepath.Join(registry, "dovetail.dev-1-reg.sock")
	foreign := filepath.Join(registry, "gpu.example.com-reg.sock")
	for _, path := range []string{dead, foreign} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	alive := filepath.Join(plugin, "dra-2.sock")
	l, err := net.Listen("unix", alive)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := removeDeadSockets(registry, plugin); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dead: false, foreign: true, alive: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", filepath.Base(path), err == nil, want)
		}
	}
}

func TestObserver(t *testing.T) {
	var described machine.Machine
	var err error
	var changes int
	o := newObserver(func(context.Context) (machine.Machine, error) { return described, err })
	o.changed = func(before, now *machine.Machine) { changes++ }
	looked, stop := o.Subscribe()
	defer stop()
	look := func(wantChanges int, wantAbsent bool) {
		t.Helper()
		_ = o.look(t.Context())
		<-looked
		if changes != wantChanges || (o.Absent() != nil) != wantAbsent {
			t.Errorf("changes %d, want %d; absent %v", changes, wantChanges, o.Absent())
		}
	}
	err = failure.New(failure.Absent, "no driver")
	look(0, true)
	described, err = machine.Machine{BootID: "1", GPUs: []machine.GPU{{UUID: "a"}, {UUID: "b", Address: machine.Address{Bus: 1}}}}, nil
	look(1, false)
	look(1, false) // the same again
	described.GPUs = described.GPUs[:1]
	look(2, false)
	if gpu, ok := o.Machine().GPU("b"); !ok || gpu.Health.OK() {
		t.Errorf("a GPU that went: %+v, %v", gpu, ok)
	}
	err = failure.New(failure.Absent, "unloaded")
	look(3, true)
	look(3, true)
	for _, gpu := range o.Machine().GPUs {
		if gpu.Health.Reason != machine.FaultDriverAbsent || gpu.Health.Message != "unloaded" {
			t.Errorf("while the driver is away: %+v", gpu.Health)
		}
	}
	if len(o.Machine().GPUs) != 2 {
		t.Error("what was seen is forgotten while the driver is away")
	}
	err = nil
	look(4, false)
	if gpu, _ := o.Machine().GPU("a"); !gpu.Health.OK() {
		t.Errorf("the driver is back: %+v", gpu.Health)
	}
}

// Looks that fail vouch for nothing: they are no news, and after some of them
// nothing is known any more.
func TestFailedLooksAreNoNews(t *testing.T) {
	described, err := machine.Machine{BootID: "1", GPUs: []machine.GPU{{UUID: "a"}}}, error(nil)
	o := newObserver(func(context.Context) (machine.Machine, error) { return described, err })
	o.changed = func(_, _ *machine.Machine) {}
	looked, stop := o.Subscribe()
	defer stop()
	_ = o.look(t.Context())
	<-looked
	err = errors.New("Unknown Error")
	for i := range failedLooks {
		_ = o.look(t.Context())
		gpu, _ := o.Machine().GPU("a")
		news := len(looked) > 0
		if last := i == failedLooks-1; news != last || gpu.Health.OK() == last {
			t.Errorf("after %d failed looks: news %v, health %+v", i+1, news, gpu.Health)
		}
	}
}

func TestHealthIsReportedAfterEachLook(t *testing.T) {
	o := newObserver(func(context.Context) (machine.Machine, error) {
		return machine.Machine{BootID: "1", GPUs: []machine.GPU{
			{UUID: "a", Address: machine.Address{Bus: 1}},
			{UUID: "b", Address: machine.Address{Bus: 2}, Health: machine.Health{Reason: machine.FaultLost, Message: "gone"}},
		}}, nil
	})
	o.changed = func(_, _ *machine.Machine) {}
	p := &plugin{node: "node-1", observer: o, offering: &offering{}}
	ctx, cancel := context.WithCancel(t.Context())
	reports := make(chan kubeletplugin.DeviceHealthReport)
	ended := make(chan error)
	go func() { ended <- p.WatchHealthStatus(ctx, reports) }()

	if first := <-reports; len(first.Devices) != 0 {
		t.Errorf("before the first look: %+v", first)
	}
	_ = o.look(ctx)
	second := <-reports
	if len(second.Devices) != len(o.Machine().Devices()) || second.Devices[0].Health != kubeletplugin.HealthStatusHealthy ||
		second.Devices[1].Health != kubeletplugin.HealthStatusUnhealthy || second.Devices[1].Message != "gone" {
		t.Errorf("report %+v", second)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}

// Sizes of shares that classes ask for are the offering's, not the machine's.
func TestHealthOfSizes(t *testing.T) {
	o := newObserver(func(context.Context) (machine.Machine, error) {
		return machine.Machine{GPUs: []machine.GPU{{UUID: "a", Address: machine.Address{Bus: 1}, Memory: machine.Memory{Total: 1 << 30}}}}, nil
	})
	o.changed = func(_, _ *machine.Machine) {}
	_ = o.look(t.Context())
	p := &plugin{observer: o, offering: &offering{offer: &class.Offer{Machine: machine.Machine{
		Sharing: machine.Sharing{Sizes: []machine.Size{{Name: "turn", Kind: machine.KindTimeSlice, Clients: 4}}},
	}}}}
	report := healthReport("node-1", p.published(), nil, time.Now())
	if !slices.ContainsFunc(report.Devices, func(d kubeletplugin.DeviceHealth) bool { return d.DeviceName == "timeslice-01-00-turn" }) {
		t.Errorf("report %+v", report)
	}
	if len(o.Machine().Sharing.Sizes) > 0 {
		t.Error("the machine was changed")
	}
}

// Who has what the node does not offer any more is told how that is.
func TestHealthOfWhatIsGone(t *testing.T) {
	m := &machine.Machine{GPUs: []machine.GPU{{UUID: "a", Address: machine.Address{Bus: 1}}}}
	held := []machine.Held{
		{Name: "gpu-02-00", Kind: machine.KindGPU, GPU: "gone"}, {Name: "gpu-01-00", Kind: machine.KindGPU, GPU: "a"},
		{Name: "of-a-kind-not-known", GPU: "a"},
	}
	var lost []string
	devices := healthReport("node-1", m, held, time.Now()).Devices
	for _, d := range devices {
		if d.Health != kubeletplugin.HealthStatusHealthy {
			lost = append(lost, d.DeviceName+": "+d.Message)
		}
	}
	if want := "gpu-02-00: GPU gone of gpu-02-00 is not there any more"; len(lost) != 1 || lost[0] != want || len(devices) != len(m.Devices())+1 {
		t.Errorf("of %d devices not healthy: %q", len(devices), lost)
	}
}

// What was withheld for a claim is looked at again when one has ended.
func TestLookAfterRelease(t *testing.T) {
	o := newObserver(func(context.Context) (machine.Machine, error) { return machine.Machine{BootID: "1"}, nil })
	o.changed = func(_, _ *machine.Machine) {}
	withheld := false
	o.recall = func(*machine.Machine) bool { return withheld }
	for _, withheld = range []bool{false, true, false} {
		_ = o.look(t.Context())
		o.Released()
		asked := false
		select {
		case <-o.trigger:
			asked = true
		default:
		}
		if asked != withheld {
			t.Errorf("withheld: %t, a look is asked for: %t", withheld, asked)
		}
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		in    string
		limit int
		want  string
	}{{"short", 5, "short"}, {"longer", 5, "lo…"}, {"ääää", 7, "ää…"}, {"ääää", 6, "ä…"}} {
		if got := cut(test.in, test.limit); got != test.want || len(got) > test.limit {
			t.Errorf("cut(%q, %d) = %q", test.in, test.limit, got)
		}
	}
}

// A driver that hangs from the start keeps no NIC from being offered.
func TestFirstLookFails(t *testing.T) {
	o := newObserver(func(context.Context) (machine.Machine, error) {
		return machine.Machine{BootID: "1", NICs: []machine.NIC{{Vendor: "NVIDIA"}}}, failure.New(failure.Busy, "the driver hangs")
	})
	o.changed = func(_, _ *machine.Machine) {}
	_ = o.look(t.Context())
	if m := o.Machine(); len(m.NICs) != 1 || o.Absent() == nil {
		t.Errorf("%+v, absent %v", m, o.Absent())
	}
}
