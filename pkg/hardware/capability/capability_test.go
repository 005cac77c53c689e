package capability_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/capability"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// procFiles writes what a driver lists.
func procFiles(t *testing.T, devices, minors string) string {
	t.Helper()
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "driver/nvidia-caps"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{"devices": devices, "driver/nvidia-caps/mig-minors": minors} {
		if err := os.WriteFile(filepath.Join(proc, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

const (
	devices = "Character devices:\n195 nvidia\n233 nvidia-caps-imex-channels\n234 nvidia-caps\n\nBlock devices:\n259 nvidia-caps\n"
	minors  = "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu0/gi1/ci1/access 14\n" +
		"gpu0/gi10/access 93\ngpu0/gi10/ci0/access 94\ngpu1/gi1/access 147\ngpu1/gi1/ci0/access 148\n"
)

func TestPartition(t *testing.T) {
	table, err := capability.Read(procFiles(t, devices, minors))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := table.Partition(0, 1, 1)
	want := []capability.Node{
		{Path: "/dev/nvidia-caps/nvidia-cap12", Major: 234, Minor: 12},
		{Path: "/dev/nvidia-caps/nvidia-cap14", Major: 234, Minor: 14},
	}
	if err != nil || !slices.Equal(nodes, want) {
		t.Errorf("%+v, %v", nodes, err)
	}
	for _, missing := range [][3]int{{2, 1, 0}, {0, 2, 0}, {0, 1, 2}} {
		if _, err := table.Partition(missing[0], missing[1], missing[2]); !errors.Is(err, failure.Absent) {
			t.Errorf("%v: %v", missing, err)
		}
	}
}

func TestMonitor(t *testing.T) {
	for content, want := range map[string]bool{minors: true, "gpu0/gi1/access 12\n": false} {
		table, err := capability.Read(procFiles(t, devices, content))
		if err != nil {
			t.Fatal(err)
		}
		node, ok := table.Monitor()
		if ok != want || ok && node != (capability.Node{Path: "/dev/nvidia-caps/nvidia-cap2", Major: 234, Minor: 2}) {
			t.Errorf("of %q: %+v, %t", content, node, ok)
		}
	}
}

func TestGPUInstanceHasAllItsComputeInstances(t *testing.T) {
	table, err := capability.Read(procFiles(t, devices, minors))
	if err != nil {
		t.Fatal(err)
	}
	var found []uint32
	for _, node := range table.GPUInstance(0, 1) {
		found = append(found, node.Minor)
	}
	if !slices.Equal(found, []uint32{12, 13, 14}) {
		t.Errorf("minors %v", found)
	}
	if nodes := table.GPUInstance(0, 2); len(nodes) > 0 {
		t.Errorf("of an instance that cannot be: %v", nodes)
	}
}

func TestNoMajorNumber(t *testing.T) {
	for _, devices := range []string{"Character devices:\n195 nvidia\n", "Character devices:\n\nBlock devices:\n259 nvidia-caps\n"} {
		if _, err := capability.Read(procFiles(t, devices, minors)); !errors.Is(err, failure.Absent) {
			t.Errorf("%q: %v", devices, err)
		}
	}
	if _, err := capability.Read(t.TempDir()); err == nil || errors.Is(err, failure.Absent) {
		t.Errorf("no proc: %v", err)
	}
}

// TestMachine reads what the simulated driver lists: no two instances have the
// same node, and it goes with the driver.
func TestMachine(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	proc := filepath.Join(m.Root(), "proc")
	table, err := capability.Read(proc)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, gpu := range m.Spec().GPUs {
		for gi := range 15 {
			nodes, err := table.Partition(gpu.Minor, gi, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, node := range nodes {
				if seen[node.Path] {
					t.Errorf("GPU %d, instance %d: %s is another's", gpu.Minor, gi, node.Path)
				}
				seen[node.Path] = true
			}
		}
	}
	if err := m.SetDriver(simulator.DriverUnloaded); err != nil {
		t.Fatal(err)
	}
	m.Sync()
	if _, err := capability.Read(proc); !errors.Is(err, failure.Absent) || !strings.Contains(err.Error(), "load") {
		t.Errorf("without a driver: %v", err)
	}
}

func BenchmarkRead(b *testing.B) {
	m := simulatortest.New(b, "sixteen")
	for b.Loop() {
		if _, err := capability.Read(filepath.Join(m.Root(), "proc")); err != nil {
			b.Fatal(err)
		}
	}
}
