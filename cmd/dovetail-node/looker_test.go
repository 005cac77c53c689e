package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
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
			if _, err := (&classes{}).choose(&what, l.pluginDir); err != nil {
				t.Errorf("%s: %v", hidden, err)
			}
			if f := what.published.Faults[0]; f.Kind != machine.FaultUnreadable || !strings.Contains(f.Message, "run it as root") || !strings.Contains(f.Message, "plugin") {
				t.Errorf("%s: %+v", hidden, f)
			}
		})
	}
}

// A NIC that a claim's Pod has is shown as it was at home, where NVIDIA's driver is away, too.
func TestLookAtClaimedNICWithoutDriver(t *testing.T) {
	w, err := claimtest.Create(t.TempDir(), "dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := w.Manager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nics := m.Machine().NICs
	home := nics[slices.IndexFunc(nics, func(n machine.NIC) bool { return n.Offered() })]
	c, err := w.Allocate("a", "", home.Name())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Prepare(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := w.Start("a"); err != nil {
		t.Fatal(err)
	}
	state, err := w.Machine.State()
	if err != nil {
		t.Fatal(err)
	}
	bootID := filepath.Join(w.Dir, "proc/sys/kernel/random/boot_id")
	if err := errors.Join(os.MkdirAll(filepath.Dir(bootID), 0o755), os.WriteFile(bootID, []byte(state.BootID), 0o600)); err != nil {
		t.Fatal(err)
	}
	here := host.New(driverless{}, filepath.Join(w.Dir, "sys"), filepath.Join(w.Dir, "proc"))
	here.NICs = w.Machine.NICs()
	l := looker{pluginDir: w.Dir, cdiDir: filepath.Join(w.Dir, "cdi")}
	what, err := l.compare(t.Context(), here)
	if !errors.Is(err, failure.Absent) {
		t.Fatal(err)
	}
	nic := what.published.NIC(home.Address)
	if nic == nil || !nic.Away || !nic.Health.OK() || !reflect.DeepEqual(nic.Netdevs, home.Netdevs) {
		t.Errorf("it is shown as %+v", nic)
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
