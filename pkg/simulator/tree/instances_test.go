package tree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
)

// capabilities are those of instances, in proc, with their minor numbers.
func capabilities(t *testing.T, m *simulatortest.Machine) map[string]int {
	t.Helper()
	dir := filepath.Join(m.Root(), "proc/driver/nvidia/capabilities")
	found := map[string]int{}
	for _, pattern := range []string{"gpu*/mig/gi*/access", "gpu*/mig/gi*/ci*/access"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := filepath.Rel(dir, file)
			var minor int
			if _, err := fmt.Sscanf(string(data), "DeviceFileMinor: %d\nDeviceFileMode: 256\nDeviceFileModify: 1\n", &minor); err != nil {
				t.Errorf("%s has %q", name, data)
			}
			found[name] = minor
		}
	}
	return found
}

// checkCapabilities: those that there are have the numbers of mig-minors, and device
// nodes, and there are no other nodes.
func checkCapabilities(t *testing.T, m *simulatortest.Machine, want ...string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(m.Root(), "proc/driver/nvidia-caps/mig-minors"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := []string{"nvidia-cap1", "nvidia-cap2"}
	found := capabilities(t, m)
	for name, minor := range found {
		nodes = append(nodes, fmt.Sprintf("nvidia-cap%d", minor))
		if line := strings.Replace(name, "mig/", "", 1) + fmt.Sprintf(" %d\n", minor); !strings.Contains(string(data), "\n"+line) {
			t.Errorf("mig-minors lacks %q", line)
		}
		if !slices.Contains(want, name) {
			t.Errorf("%s is there", name)
		}
	}
	if len(found) != len(want) {
		t.Errorf("there are %v, want %q", found, want)
	}
	if os.Geteuid() != 0 {
		return
	}
	entries, err := os.ReadDir(filepath.Join(m.Root(), "dev/nvidia-caps"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(nodes, e.Name()) {
			t.Errorf("node %s is there", e.Name())
		}
		var stat unix.Stat_t
		if err := unix.Stat(filepath.Join(m.Root(), "dev/nvidia-caps", e.Name()), &stat); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("nvidia-cap%d", unix.Minor(stat.Rdev)); unix.Major(stat.Rdev) != 511 || got != e.Name() {
			t.Errorf("node %s has number %d:%d", e.Name(), unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
		}
	}
	if len(entries) != len(nodes) {
		t.Errorf("%d nodes, want %q", len(entries), nodes)
	}
}

func TestCapabilitiesFollow(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	checkCapabilities(t, m)
	must(m.SetMIGMode("3", true))
	must(m.SetMIGMode("7", true))
	for _, gpu := range []string{"3", "7"} {
		made, err := m.MakeGPUInstance(gpu, 9, nil)
		must(err)
		checkSynced(t, m)
		for range 2 {
			_, err := m.MakeComputeInstance(gpu, made.ID, 1)
			must(err)
		}
	}
	seventh := []string{"gpu7/mig/gi1/access", "gpu7/mig/gi1/ci0/access", "gpu7/mig/gi1/ci1/access"}
	checkCapabilities(t, m, append(seventh, "gpu3/mig/gi1/access", "gpu3/mig/gi1/ci0/access", "gpu3/mig/gi1/ci1/access")...)
	must(m.DestroyComputeInstance("3", 1, 0))
	checkCapabilities(t, m, append(seventh, "gpu3/mig/gi1/access", "gpu3/mig/gi1/ci1/access")...)
	must(m.DestroyComputeInstance("3", 1, 1))
	must(m.DestroyGPUInstance("3", 1))
	checkCapabilities(t, m, seventh...)
	checkSynced(t, m)
	must(m.Inject("7", simulator.FaultLost))
	checkCapabilities(t, m)
	checkSynced(t, m)
}

// checkSynced: Sync finds nothing to do.
func checkSynced(t *testing.T, m *simulatortest.Machine) {
	t.Helper()
	if report, err := tree.Sync(m.Machine, tree.Built{}); err != nil || report.Written != 0 || report.Removed != 0 {
		t.Errorf("Sync had something to do: %+v, %v", report, err)
	}
}
