package tree_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
)

func TestSyncIsIdempotent(t *testing.T) {
	m := simulatortest.New(t, "dgx-h100")
	report, err := tree.Sync(m.Machine, tree.Built{})
	if err != nil || report.Written != 0 || report.Removed != 0 {
		t.Errorf("the second time: %+v, %v", report, err)
	}
}

func TestFilesFollowTheDriver(t *testing.T) {
	m := simulatortest.New(t, "l40s")
	m.InstallTools()
	for _, c := range []struct {
		driver            simulator.Driver
		module, installed bool
	}{
		{simulator.DriverUnloaded, false, true},
		{simulator.DriverLoaded, true, true},
		{simulator.DriverMissing, false, false},
		{simulator.DriverLoaded, true, true},
	} {
		if err := m.SetDriver(c.driver); err != nil {
			t.Fatal(err)
		}
		m.Sync()
		for name, want := range map[string]bool{
			"proc/driver/nvidia/version":                       c.module,
			"proc/driver/nvidia/gpus/0000:16:00.0/information": c.module,
			"sys/bus/pci/devices/0000:16:00.0/driver":          c.module,
			"dev/nvidia3":                             c.module && os.Geteuid() == 0,
			"usr/bin/nvidia-smi":                      c.installed,
			"usr/lib64/libcuda.so.570.195.03":         c.installed,
			"sys/bus/pci/devices/0000:16:00.0/vendor": true,
			"dev": true,
		} {
			_, err := os.Lstat(filepath.Join(m.Root(), name))
			if (err == nil) != want {
				t.Errorf("driver %s: %s is there: %t, want %t", c.driver, name, err == nil, want)
			}
		}
	}
}

func TestDeviceNodes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make device nodes")
	}
	m := simulatortest.New(t, "dgx-h100")
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(m.Root(), "dev/nvidia7"), &stat); err != nil {
		t.Fatal(err)
	}
	if stat.Mode != unix.S_IFCHR|0o666 || unix.Major(stat.Rdev) != 195 || unix.Minor(stat.Rdev) != 7 {
		t.Errorf("dev/nvidia7 has mode %o and number %d:%d", stat.Mode, unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	}
}

func TestStubsHaveTheirNames(t *testing.T) {
	m := simulatortest.New(t, "t4")
	f, err := elf.Open(filepath.Join(m.Root(), "usr/lib64/libcuda.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names, err := f.DynString(elf.DT_SONAME)
	if err != nil || len(names) != 1 || names[0] != "libcuda.so.1" {
		t.Errorf("DT_SONAME is %v, %v", names, err)
	}
}

func TestNVIDIASMI(t *testing.T) {
	m := simulatortest.New(t, "mixed")
	m.InstallTools()
	output, err := exec.Command(filepath.Join(m.Root(), "usr/bin/nvidia-smi"), "-L").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	want := "GPU 1: NVIDIA L4 (UUID: " + m.Spec().GPUs[1].UUID + ")"
	if len(lines) != 4 || lines[1] != want {
		t.Errorf("got\n%s, want %q in its second line", output, want)
	}
}
