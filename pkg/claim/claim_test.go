package claim_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func TestPrepareAndRelease(t *testing.T) {
	w := newWorld(t)
	plain := w.allocate("plain", "", "gpu-1b-00", "gpu-43-00")
	exclusive := w.allocate("exclusive", claimtest.Exclusive, "gpu-52-00")
	devices := w.prepare(plain)
	if len(devices) != 2 || devices[0].Name != "gpu-1b-00" || devices[1].CDIDeviceID != "dovetail.dev/claim=uid-plain_gpu_gpu-43-00" {
		t.Errorf("devices %+v", devices)
	}
	w.prepare(exclusive)
	w.check("plain", "exclusive")
	w.unprepare(exclusive)
	w.check("plain")
	w.unprepare(plain)
	w.check()
}

func TestCallsAreIdempotent(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", claimtest.Exclusive, "gpu-1b-00")
	first := w.prepare(c)
	for range 2 {
		again := w.prepare(c)
		again[0].Hardware = first[0].Hardware // its compute mode has changed
		if !reflect.DeepEqual(again, first) {
			t.Errorf("again %+v, first %+v", again, first)
		}
		w.restart()
	}
	w.check("a")
	w.unprepare(c)
	w.unprepare(c)
	w.unprepare(w.allocate("never-prepared", "", "gpu-43-00"))
	w.check()
}

// What was set before comes back, whatever it was.
func TestComputeModeComesBack(t *testing.T) {
	w := newWorld(t)
	now, err := w.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uuid := now.GPUs[0].UUID
	set := func(mode machine.ComputeMode) {
		if err := w.GPUs.SetComputeMode(t.Context(), uuid, mode); err != nil {
			t.Fatal(err)
		}
	}
	get := func() machine.ComputeMode {
		mode, err := w.GPUs.ComputeMode(t.Context(), uuid)
		if err != nil {
			t.Fatal(err)
		}
		return mode
	}
	set(machine.ComputeModeProhibited)
	c := w.prepared("a", claimtest.Exclusive, "gpu-1b-00")
	w.unprepare(c)
	if got := get(); got != machine.ComputeModeProhibited {
		t.Errorf("after release: %s", got)
	}
	w.prepare(c)
	set(machine.ComputeModeDefault) // somebody else, meanwhile
	w.unprepare(c)
	if got := get(); got != machine.ComputeModeDefault {
		t.Errorf("somebody else's mode became %s", got)
	}
}

func TestRepairs(t *testing.T) {
	w := newWorld(t)
	c := w.prepared("a", claimtest.Exclusive, "gpu-1b-00")
	for name, damage := range map[string]func() error{
		"CDI directory wiped": func() error { return os.RemoveAll(filepath.Join(w.Dir, "cdi")) },
		"compute mode changed by hand": func() error {
			return w.Machine.SetComputeMode("0", machine.ComputeModeDefault)
		},
		"rebooted": func() error {
			return errors.Join(w.Machine.Reboot(), os.RemoveAll(filepath.Join(w.Dir, "cdi")))
		},
	} {
		if err := damage(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.restart()
		w.prepare(c)
		w.check("a")
	}
	w.unprepare(c)
	w.check()
}

func TestHeldDeviceIsRefusedWithItsHolder(t *testing.T) {
	w := newWorld(t)
	first := w.prepared("first", "", "gpu-1b-00")
	second := w.allocate("second", "", "gpu-43-00", "gpu-1b-00")
	w.refused(second, failure.Conflict, "gpu-1b-00", "default/first", "uid-first")
	w.check("first")
	w.unprepare(first)
	w.prepare(second)
	w.check("second")
}

func TestAdminAccessChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.prepared("tenant", claimtest.Exclusive, "gpu-1b-00")
	admin := w.allocate("admin", claimtest.Exclusive, "gpu-1b-00", "gpu-43-00")
	claimtest.Admin(admin)
	if devices := w.prepare(admin); len(devices) != 2 {
		t.Errorf("devices %+v", devices)
	}
	w.check("admin", "tenant")
	w.unprepare(admin)
	w.check("tenant")
}

func TestLatePrepareDoesNotResurrect(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "gpu-1b-00")
	stale := c.DeepCopy()
	w.prepare(c)
	w.unprepare(c)
	if err := w.Delete("a"); err != nil {
		t.Fatal(err)
	}
	w.refused(stale, failure.Conflict, "released")
	w.check()

	c.Status.ReservedFor = nil // the Pod is gone, the claim stays
	if err := w.Store(c); err != nil {
		t.Fatal(err)
	}
	w.refused(stale, failure.Conflict, "reserved")

	if err := w.Store(stale); err != nil { // another Pod uses it
		t.Fatal(err)
	}
	w.prepare(stale)
	w.check("a")
}

func (newDriver) Common() (*specs.ContainerEdits, error) {
	return &specs.ContainerEdits{Env: []string{"DRIVER=new"}}, nil
}

func (renamed) ComputeMode(context.Context, string) (machine.ComputeMode, error) {
	return machine.ComputeModeDefault, nil
}

func (renamed) Partitions(context.Context, string) (hardware.Partitions, error) {
	return hardware.Partitions{}, nil
}

func TestAnAdminSeesADeviceTwice(t *testing.T) {
	w := newWorld(t)
	c := w.allocate("a", "", "gpu-1b-00", "gpu-1b-00")
	claimtest.Admin(c)
	c.Status.Allocation.Devices.Results[1].Request = "again"
	devices := w.prepare(c)
	if len(devices) != 2 || devices[0].CDIDeviceID == devices[1].CDIDeviceID {
		t.Errorf("devices %+v", devices)
	}
}
