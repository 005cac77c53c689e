package nvml_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestAddMemoryLimit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may set limits")
	}
	f := fixture(t, "mps-v3")
	gpus, uuid := f.GPUs.(*nvml.GPUs), f.Machine.Spec().GPUs[0].UUID
	cgroup := t.TempDir()
	for i, want := range []uint64{10 << 30, 15 << 30} { // a second share of the GPU in the same container
		limit, err := gpus.AddMemoryLimit(t.Context(), uuid, cgroup, []uint64{10 << 30, 5 << 30}[i])
		if err != nil || limit != want {
			t.Fatalf("%d bytes, %v, want %d", limit, err, want)
		}
		if now, _, err := f.Machine.ReadMemoryLimits(uuid, cgroup); err != nil || now != (simulator.MemoryLimits{Soft: want, Hard: want}) {
			t.Errorf("limits %+v, %v, want %d", now, err, want)
		}
	}
	other := t.TempDir()
	if err := f.Machine.SetMemoryLimits(uuid, other, simulator.MemoryLimits{Soft: 1 << 30, Hard: simulator.NoLimit}); err != nil {
		t.Fatal(err)
	}
	if limit, err := gpus.AddMemoryLimit(t.Context(), uuid, other, 1<<30); err != nil || limit != 1<<30 {
		t.Errorf("where only the soft limit was set: %d bytes, %v", limit, err)
	}

	gone := filepath.Join(cgroup, "gone")
	for _, tt := range []struct {
		uuid, cgroup string
		bytes        uint64
		class        error
		words        string
	}{
		{uuid, gone, 1 << 30, failure.Absent, gone},
		{uuid, t.TempDir(), 1 << 60, failure.Invalid, "1152921504606846976"},
		{uuid, cgroup, ^uint64(0) - 15<<30, failure.Invalid, "memory"}, // the sum would be no limit
		{"GPU-none", cgroup, 1 << 30, failure.Absent, "GPU-none"},
	} {
		_, err := gpus.AddMemoryLimit(t.Context(), tt.uuid, tt.cgroup, tt.bytes)
		if !errors.Is(err, tt.class) || !strings.Contains(err.Error(), tt.uuid) || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if now, _, err := f.Machine.ReadMemoryLimits(uuid, cgroup); err != nil || now.Hard != 15<<30 {
		t.Errorf("limits %+v, %v after what was refused", now, err)
	}
}

func TestAddMemoryLimitWhereThereAreNone(t *testing.T) {
	f := fixture(t, "t4")
	uuid := f.Machine.Spec().GPUs[0].UUID
	_, err := f.GPUs.(*nvml.GPUs).AddMemoryLimit(t.Context(), uuid, t.TempDir(), 1<<30)
	if !errors.Is(err, failure.Unsupported) || !strings.Contains(err.Error(), "615") {
		t.Errorf("driver 535: %v", err)
	}
}

// TestMemoryLimitFailures: each message names the GPU and a cure, and nothing is limited.
func TestMemoryLimitFailures(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may set limits")
	}
	f := fixture(t, "mps-v3")
	gpus, uuid, cgroup := f.GPUs.(*nvml.GPUs), f.Machine.Spec().GPUs[0].UUID, t.TempDir()
	for _, tt := range []struct {
		call  string
		kind  simulator.FailureKind
		class error
		cure  string
	}{
		{"nvmlDeviceGetMemoryLimits", simulator.FailureUnknown, nil, "reset it or reboot the node"},
		{"nvmlDeviceSetMemoryLimits", simulator.FailureUnknown, nil, "enforcement: None"},
		{"nvmlDeviceSetMemoryLimits", simulator.FailureNoPermission, nil, "run the container runtime as root"},
		{"nvmlDeviceSetMemoryLimits", simulator.FailureLost, failure.Absent, "reboot the node"},
	} {
		must(t, f.Machine.Fail(uuid, tt.call, simulator.Failure{Times: 1, Error: tt.kind}))
		_, err := gpus.AddMemoryLimit(t.Context(), uuid, cgroup, 1<<30)
		if err == nil || failure.ClassOf(err) != tt.class || !strings.Contains(err.Error(), uuid) || !strings.Contains(err.Error(), tt.cure) {
			t.Errorf("%s, %s: %v", tt.call, tt.kind, err)
		}
	}
	must(t, f.Machine.Restore(uuid, simulator.FaultLost))
	must(t, f.Machine.Inject(uuid, simulator.FaultNoMemoryLimits))
	_, err := gpus.AddMemoryLimit(t.Context(), uuid, cgroup, 1<<30)
	if !errors.Is(err, failure.Unsupported) || !strings.Contains(err.Error(), "delete it, with its Pods") {
		t.Errorf("a GPU that lacks them: %v", err)
	}
	must(t, f.Machine.Restore(uuid, simulator.FaultNoMemoryLimits))
	if now, _, err := f.Machine.ReadMemoryLimits(uuid, cgroup); !errors.Is(err, simulator.ErrNoLimits) {
		t.Errorf("limits %+v, %v", now, err)
	}
}

// A cgroup that the driver cannot open is no answer, and is told; without one to ask about
// there is none either.
func TestLimitsThatCannotBeAsked(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "mps-v3")
	for cgroup, faults := range map[string]int{"": 0, filepath.Join(m.Root(), "gone"): len(m.Spec().GPUs)} {
		gpus := nvml.New(nvml.Options{DriverRoot: m.Root(), Cgroup: cgroup})
		d, err := gpus.Describe(t.Context())
		must(t, err)
		must(t, gpus.Close())
		if len(d.GPUs) != 2 || d.GPUs[0].LimitsCgroups || d.GPUs[1].LimitsCgroups || len(d.Faults) != faults {
			t.Errorf("cgroup %q: %+v, faults %+v", cgroup, d.GPUs, d.Faults)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
