package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// driverless is a node without NVIDIA's driver.
type driverless struct{ hardware.GPUs }

func (driverless) Describe(context.Context) (hardware.Description, error) {
	return hardware.Description{}, failure.New(failure.Absent, "no driver")
}

// Who may not read the agent's journal sees the hardware, and is told what is missing.
func TestLookWithoutRoot(t *testing.T) {
	dir, err := os.MkdirTemp("", "looker") // t.TempDir's parents are its owner's alone
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	bootID := filepath.Join(dir, "proc/sys/kernel/random/boot_id")
	for _, d := range []string{filepath.Dir(bootID), filepath.Join(dir, "plugin/claims")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(bootID, []byte("b7\n"), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	l := looker{pluginDir: filepath.Join(dir, "plugin"), cdiDir: filepath.Join(dir, "cdi")}
	here := host.New(driverless{}, filepath.Join(dir, "sys"), filepath.Join(dir, "proc"))
	for _, hidden := range []string{"plugin/claims", "plugin"} {
		if err := os.Chmod(filepath.Join(dir, hidden), 0o500); err != nil {
			t.Fatal(err)
		}
		asNobody(t, func() {
			what, err := l.compare(t.Context(), here)
			if !errors.Is(err, failure.Absent) || what.published.BootID != "b7" || len(what.published.Faults) != 1 {
				t.Fatalf("%s: %+v, %v", hidden, what.published, err)
			}
			if f := what.published.Faults[0]; f.Kind != machine.FaultUnreadable || !strings.Contains(f.Message, "run it as root") || !strings.Contains(f.Message, "plugin") {
				t.Errorf("%s: %+v", hidden, f)
			}
		})
	}
}

// asNobody calls f on a thread that reads files as nobody (setfsuid(2)), where this process
// is root's.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody = 65534
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setfsuid(0) }()
	f()
}
