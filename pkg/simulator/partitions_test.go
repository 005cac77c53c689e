package simulator_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func gpu(t *testing.T, m *simulatortest.Machine, i int) simulator.GPU {
	t.Helper()
	state, err := m.State()
	must(t, err)
	return state.GPU(i)
}

func TestStaticPartitions(t *testing.T) {
	m := simulatortest.New(t, "static-mig")
	check := func() {
		t.Helper()
		d, err := m.GPUs().Describe(t.Context())
		must(t, err)
		instances := d.GPUs[0].MIG.Instances
		if len(instances) != 2 || instances[0].Placement != (machine.Placement{Start: 2, Size: 2}) ||
			instances[1].Placement != (machine.Placement{Start: 4, Size: 4}) || len(instances[1].ComputeInstances) != 1 {
			t.Errorf("the first GPU has %+v", instances)
		}
		if d.GPUs[1].MIG.Instances != nil || !d.GPUs[1].MIG.Enabled || d.GPUs[2].MIG.Enabled || !d.GPUs[2].MIG.OnDemand {
			t.Errorf("the others have %+v and %+v", d.GPUs[1].MIG, d.GPUs[2].MIG)
		}
	}
	check()
	must(t, m.DestroyPartition("0", gpu(t, m, 0).Instances[0].ID))
	_, err := m.MakePartition("1", "7g.80gb", nil)
	must(t, err)
	must(t, m.Reboot())
	check()
}

// TestEachChangeIsAnEvent: and nothing else is.
func TestEachChangeIsAnEvent(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	events, err := m.Events()
	must(t, err)
	defer events.Close()
	count := func() int {
		t.Helper()
		n := 0
		for {
			event, err := events.Poll(func(e simulator.Event) bool { return e.MIG && e.Xid == 0 })
			must(t, err)
			if event == nil {
				return n
			}
			n++
		}
	}
	var in machine.GPUInstance
	for _, step := range []struct {
		name string
		do   func() error
		want int
	}{
		{"mode", func() error { return m.SetMIGMode("0", true) }, 1},
		{"the same mode", func() error { return m.SetMIGMode("0", true) }, 0},
		{"GPU instance", func() (err error) { in, err = m.MakeGPUInstance("0", 9, nil); return err }, 1},
		{"compute instance", func() error { _, err := m.MakeComputeInstance("0", in.ID, 3); return err }, 1},
		{"Xid", func() error { return m.RaiseXid("0", 31) }, 0},
		{"destroyed", func() error { return m.DestroyPartition("0", in.ID) }, 2},
		{"failed", func() error {
			if _, err := m.MakeGPUInstance("0", 4711, nil); !errors.Is(err, failure.Invalid) {
				t.Errorf("a profile that is none: %v", err)
			}
			return nil
		}, 0},
	} {
		must(t, step.do())
		if got := count(); got != step.want {
			t.Errorf("%s: %d events, want %d", step.name, got, step.want)
		}
	}
}

// TestFace: what the driver sees through the port.
func TestFace(t *testing.T) {
	m := simulatortest.New(t, "mixed")
	g, spec := m.GPUs(), m.Spec()
	a100, l4 := spec.GPUs[0].UUID, spec.GPUs[1].UUID
	at := machine.Placement{Start: 4, Size: 4}
	for name, call := range map[string]func(uuid string) error{
		"Partitions":   func(uuid string) error { _, err := g.Partitions(t.Context(), uuid); return err },
		"SetMIGMode":   func(uuid string) error { return g.SetMIGMode(t.Context(), uuid, true) },
		"GPU instance": func(uuid string) error { _, err := g.MakeGPUInstance(t.Context(), uuid, 9, at); return err },
		"compute":      func(uuid string) error { _, err := g.MakeComputeInstance(t.Context(), uuid, 1); return err },
		"unmake":       func(uuid string) error { return g.DestroyComputeInstance(t.Context(), uuid, 1, 0) },
		"unmake GPU":   func(uuid string) error { return g.DestroyGPUInstance(t.Context(), uuid, 1) },
	} {
		if err := call(l4); !errors.Is(err, failure.Unsupported) {
			t.Errorf("%s without MIG: %v", name, err)
		}
		if err := call("GPU-0"); !errors.Is(err, failure.Absent) {
			t.Errorf("%s of no GPU: %v", name, err)
		}
	}
	must(t, m.SetMIGMode("0", true))
	must(t, m.Reset("0"))
	id, err := g.MakeGPUInstance(t.Context(), a100, 9, at)
	must(t, err)
	if _, err := g.MakeGPUInstance(t.Context(), a100, 9, at); !errors.Is(err, failure.Conflict) {
		t.Errorf("twice: %v", err)
	}
	if _, err := g.MakeGPUInstance(t.Context(), a100, 9, machine.Placement{Start: 3, Size: 4}); !errors.Is(err, failure.Invalid) {
		t.Errorf("at 3: %v", err)
	}
	c, err := g.MakeComputeInstance(t.Context(), a100, id)
	if err != nil || c.ComputeSlices != 3 {
		t.Errorf("compute instance %+v, %v", c, err)
	}
	if _, err := g.MakeComputeInstance(t.Context(), a100, id); !errors.Is(err, failure.Conflict) {
		t.Errorf("a second one: %v", err)
	}
	p, err := g.Partitions(t.Context(), a100)
	if err != nil || !p.Enabled || len(p.Instances) != 1 || p.Instances[0].ComputeInstances[0] != c {
		t.Errorf("partitions %+v, %v", p, err)
	}
	must(t, g.DestroyComputeInstance(t.Context(), a100, id, c.ID))
	must(t, g.DestroyGPUInstance(t.Context(), a100, id))
	for _, err := range []error{g.DestroyComputeInstance(t.Context(), a100, id, c.ID), g.DestroyGPUInstance(t.Context(), a100, id)} {
		if !errors.Is(err, failure.Absent) {
			t.Errorf("once more: %v", err)
		}
	}
}

// TestSlowGPUsSideBySide: a call that takes its time keeps nothing else waiting, and
// changes nothing before its time is over. Nor is Describe slower.
func TestSlowGPUsSideBySide(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	g := m.GPUs()
	must(t, m.SetMIGMode("0", true))
	must(t, m.SetMIGMode("1", true))
	for _, call := range []string{
		simulator.CallSetMIGMode, simulator.CallMakeGPUInstance, simulator.CallMakeComputeInstance,
		simulator.CallDestroyComputeInstance, simulator.CallDestroyGPUInstance,
	} {
		must(t, m.Slow("0", call, time.Hour))
	}
	whole := func(i int) error {
		_, err := g.MakeGPUInstance(t.Context(), m.Spec().GPUs[i].UUID, 0, machine.Placement{Size: 8})
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- whole(0) }()
	must(t, whole(1))
	d, err := g.Describe(t.Context())
	must(t, err)
	if len(d.GPUs[0].MIG.Instances) != 0 || len(d.GPUs[1].MIG.Instances) != 1 {
		t.Errorf("instances %+v and %+v", d.GPUs[0].MIG.Instances, d.GPUs[1].MIG.Instances)
	}
	select {
	case err := <-ended:
		t.Errorf("the slow one is back: %v", err)
	default:
	}
}

// TestManyAtOnce is for the race detector: two handles, as in two processes, fill and
// empty all GPUs.
func TestManyAtOnce(t *testing.T) {
	m := simulatortest.New(t, "static-mig")
	other, err := simulator.Open(m.Root())
	must(t, err)
	var all sync.WaitGroup
	made := make(chan int, 64)
	for _, handle := range []*simulator.Machine{m.Machine, other} {
		for range 4 {
			all.Go(func() {
				for {
					in, err := handle.MakePartition("1", "1g.10gb", nil)
					if errors.Is(err, failure.Conflict) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					made <- in.ID
				}
			})
		}
	}
	all.Go(func() {
		for range 20 {
			if _, err := m.GPUs().Describe(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	close(made)
	seen := map[int]bool{}
	for id := range made {
		if seen[id] {
			t.Errorf("ID %d was given twice", id)
		}
		seen[id] = true
	}
	if g := gpu(t, m, 1); len(seen) != 7 || len(g.Instances) != 7 {
		t.Errorf("%d were made, %d are there, want 7", len(seen), len(g.Instances))
	}
}
