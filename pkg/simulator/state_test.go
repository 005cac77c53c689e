package simulator_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestFind(t *testing.T) {
	m := simulatortest.New(t, "gb200")
	state, err := m.State()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"2", "0018:01:00.0", "00000018:01:00.0", state.Spec.GPUs[2].UUID} {
		if g, err := state.Find(name); err != nil || g.Index != 2 {
			t.Errorf("%q is GPU %d, %v", name, g.Index, err)
		}
	}
	for _, name := range []string{"", "4", "-1", "0000:01:00.0", "GPU-"} {
		if _, err := state.Find(name); !errors.Is(err, failure.Absent) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCreateKeepsTheSameMachine(t *testing.T) {
	m := simulatortest.New(t, "t4")
	if err := m.RaiseXid("0", 48); err != nil {
		t.Fatal(err)
	}
	spec := m.Spec()
	again, created, err := simulator.Create(m.Root(), spec)
	if err != nil || created {
		t.Fatalf("the same machine was made anew: %t, %v", created, err)
	}
	if state, err := again.State(); err != nil || state.GPUs[0].Recovery != simulator.RecoveryGPUReset {
		t.Errorf("it lost its state: %v", err)
	}
	spec.Driver.Version = "535.0"
	if _, created, err = simulator.Create(m.Root(), spec); err != nil || !created {
		t.Errorf("another machine was not made: %t, %v", created, err)
	}
}

func TestNoMachine(t *testing.T) {
	if _, err := simulator.Open(t.TempDir()); !errors.Is(err, failure.Absent) {
		t.Errorf("no machine: %v", err)
	}
	if _, err := simulator.Find(filepath.Join(t.TempDir(), "usr/lib64/x.so")); !errors.Is(err, failure.Absent) {
		t.Errorf("no machine above: %v", err)
	}
	m := simulatortest.New(t, "t4")
	for _, text := range []string{"", "{", `{"version": 99}`, `{"version": 1, "gpus": [{}]}`,
		`{"version": 1, "spec": {"gpus": [{"address": "0000:3b:00.0", "model": "t4"}]}, "gpus": [{"instances": [{"id": 1}]}]}`} {
		file := filepath.Join(m.Root(), simulator.StateDir, "state.json")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := simulator.Open(m.Root()); !errors.Is(err, failure.Corrupt) {
			t.Errorf("state %q: %v", text, err)
		}
	}
}

// TestChangesAreSeenAtOnce: two handles, as in two processes.
func TestChangesAreSeenAtOnce(t *testing.T) {
	m := simulatortest.New(t, "t4")
	other, err := simulator.Open(m.Root())
	if err != nil {
		t.Fatal(err)
	}
	uuid := m.Spec().GPUs[0].UUID
	for i := range 200 {
		mode := machine.ComputeModeDefault
		if i%2 == 0 {
			mode = machine.ComputeModeProhibited
		}
		if err := m.SetComputeMode(uuid, mode); err != nil {
			t.Fatal(err)
		}
		if state, err := other.State(); err != nil || state.GPUs[0].ComputeMode != mode {
			t.Fatalf("change %d is not seen: %v", i, err)
		}
	}
}

func TestNoChangeIsLost(t *testing.T) {
	m := simulatortest.New(t, "t4")
	var all sync.WaitGroup
	for range 8 {
		other, err := simulator.Open(m.Root())
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for range 25 {
				if err := other.RaiseXid("0", 31); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if state, err := m.State(); err != nil || state.NextEvent != 200 {
		t.Errorf("%d events of 200, %v", state.NextEvent, err)
	}
}

func TestRebootForgets(t *testing.T) {
	m := simulatortest.New(t, "broken")
	before, err := m.State()
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []error{
		m.RaiseXid("0", 48), m.Inject("0", simulator.FaultLost), m.Restore("1", simulator.FaultMemoryNotSupported), m.Reboot(),
	} {
		if change != nil {
			t.Fatal(change)
		}
	}
	after, err := m.State()
	if err != nil || after.BootID == before.BootID {
		t.Fatalf("boot ID %q: %v", after.BootID, err)
	}
	for i := range after.GPUs {
		if g := after.GPU(i); len(g.Faults) != len(g.Spec.Faults) || g.Recovery != simulator.RecoveryNone {
			t.Errorf("GPU %d came up as %+v", i, g.GPUState)
		}
	}
}
