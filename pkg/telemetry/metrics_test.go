package telemetry

import (
	"context"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// gpus answers each SetMIGMode with the next error.
type gpus struct {
	hardware.GPUs
	errs []error
}

func (g *gpus) SetMIGMode(context.Context, string, bool) error {
	err := g.errs[0]
	g.errs = g.errs[1:]
	return err
}

// A call is counted with its outcome, which is the error's class; the caller has the error.
func TestCallsAreMeasured(t *testing.T) {
	m := New("v1")
	errs := []error{nil, failure.New(failure.Busy, "in use"), context.Canceled}
	measured := m.GPUs(&gpus{errs: errs})
	for _, want := range errs {
		if err := measured.SetMIGMode(t.Context(), "GPU-1", true); err != want {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	got := shown(t, m, "dovetail_hardware_duration_seconds")
	for _, outcome := range []string{"ok", "busy", "error"} {
		if n := got["set-mig-mode "+outcome]; n != 1 {
			t.Errorf("%s: counted %v times in %v", outcome, n, got)
		}
	}
}

// shown is what a metric has, by its labels: numbers, or how often a time was taken.
func shown(t *testing.T, m *Metrics, name string) map[string]float64 {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, metric := range f.Metric {
			var labels []string
			for _, l := range metric.Label {
				labels = append(labels, l.GetValue())
			}
			values[strings.Join(labels, " ")] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// sharing has had one fault.
type sharing struct{ hardware.Sharing }

func (sharing) WatchMPS(_ context.Context, notify func(hardware.MPSEvent)) error {
	notify(hardware.MPSEvent{Kind: hardware.MPSFaulted})
	return nil
}

func TestEventsOfControlDaemonsAreCounted(t *testing.T) {
	m := New("v1")
	told := 0
	if err := m.Sharing(sharing{}).WatchMPS(t.Context(), func(hardware.MPSEvent) { told++ }); err != nil || told != 1 {
		t.Errorf("error %v, told %d times", err, told)
	}
	if got := shown(t, m, "dovetail_mps_events_total"); got[string(hardware.MPSFaulted)] != 1 {
		t.Errorf("counted %v", got)
	}
}

// Of what is there no more nothing is shown.
func TestMachine(t *testing.T) {
	const unhealthy = "dovetail_gpu_unhealthy"
	m := New("v1")
	sick := machine.GPU{Address: machine.Address{Bus: 0x1b}, Health: machine.Health{Reason: "lost"}}
	m.Machine(&machine.Machine{GPUs: []machine.GPU{sick}})
	if got := shown(t, m, unhealthy); len(got) != 1 || got[sick.Name()+" lost"] != 1 {
		t.Errorf("of a sick GPU %v is shown", got)
	}
	m.Machine(&machine.Machine{})
	if got := shown(t, m, unhealthy); len(got) != 0 {
		t.Errorf("of no GPU %v is shown", got)
	}
}
