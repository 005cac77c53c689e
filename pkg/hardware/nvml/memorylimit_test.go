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
