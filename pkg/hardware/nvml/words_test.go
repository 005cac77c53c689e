package nvml

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func TestWhatIsToldOfMemoryLimits(t *testing.T) {
	for ret, want := range map[api.Return]struct {
		able  bool
		fault api.Return
	}{
		api.SUCCESS:                  {true, api.SUCCESS},
		api.ERROR_NOT_FOUND:          {true, api.SUCCESS}, // of this cgroup
		api.ERROR_NOT_SUPPORTED:      {false, api.SUCCESS},
		api.ERROR_FUNCTION_NOT_FOUND: {false, api.SUCCESS},
		api.ERROR_INVALID_ARGUMENT:   {false, api.SUCCESS},
		api.ERROR_OPERATING_SYSTEM:   {false, api.ERROR_OPERATING_SYSTEM},
		api.ERROR_GPU_IS_LOST:        {false, api.ERROR_GPU_IS_LOST},
		api.ERROR_UNKNOWN:            {false, api.ERROR_UNKNOWN},
	} {
		if able, fault := told(ret); able != want.able || fault != want.fault {
			t.Errorf("%s: able %t, fault %s", ret, able, fault)
		}
	}
}

func TestMultiprocessors(t *testing.T) {
	for _, c := range []struct {
		cores      int
		capability machine.Version
		want       int
	}{
		{5120, machine.Version{Major: 7}, 80},             // V100
		{2560, machine.Version{Major: 7, Minor: 5}, 40},   // T4
		{6912, machine.Version{Major: 8}, 108},            // A100
		{9216, machine.Version{Major: 8, Minor: 6}, 72},   // A10
		{18176, machine.Version{Major: 8, Minor: 9}, 142}, // L40S
		{16896, machine.Version{Major: 9}, 132},           // H100
		{3584, machine.Version{Major: 6}, 56},             // P100
		{3840, machine.Version{Major: 6, Minor: 1}, 30},   // P40
		{1000, machine.Version{Major: 99}, 0},
		{0, machine.Version{}, 0},
	} {
		if got := multiprocessors(c.cores, c.capability); got != c.want {
			t.Errorf("%d cores of capability %s are %d multiprocessors, want %d", c.cores, c.capability, got, c.want)
		}
	}
}

func TestUnknownWords(t *testing.T) {
	if architecture(4711) != unknown || brand(4711) != unknown {
		t.Error("an unknown number has a word")
	}
	if computeMode(4711) != machine.ComputeModeDefault {
		t.Error("an unknown compute mode is not taken for the default")
	}
}

func TestHealthOf(t *testing.T) {
	for action, want := range map[api.DeviceGpuRecoveryAction]machine.FaultKind{
		api.GPU_RECOVERY_ACTION_NONE:            "",
		api.GPU_RECOVERY_ACTION_GPU_RESET:       machine.FaultResetRequired,
		api.GPU_RECOVERY_ACTION_NODE_REBOOT:     machine.FaultRebootNeeded,
		api.GPU_RECOVERY_ACTION_DRAIN_AND_RESET: machine.FaultResetRequired,
		4711:                                    machine.FaultResetRequired,
	} {
		if h := healthOf(action); h.Reason != want || h.OK() != (h.Message == "") {
			t.Errorf("action %d is %+v, want reason %q", action, h, want)
		}
	}
}

func TestProblemNamesGPUAndCure(t *testing.T) {
	for ret, class := range map[api.Return]error{
		api.ERROR_GPU_IS_LOST: failure.Absent, api.ERROR_NOT_FOUND: failure.Absent, api.ERROR_RESET_REQUIRED: failure.Busy,
		api.ERROR_NOT_SUPPORTED: failure.Unsupported, api.ERROR_UNKNOWN: nil, api.ERROR_NO_PERMISSION: nil,
	} {
		err := problem("GPU-1", "nvmlDeviceGetName", ret)
		if failure.ClassOf(err) != class {
			t.Errorf("code %d has class %v", ret, failure.ClassOf(err))
		}
		if code := api.Return(0); errors.As(err, &code) {
			t.Errorf("%v lets code %d out", err, code)
		}
	}
}

func TestFindsTheLibrary(t *testing.T) {
	for _, dir := range libraryDirs {
		root := t.TempDir()
		want := filepath.Join(root, dir, libraryName)
		if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(want, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := (Options{DriverRoot: root}).find(); got != want {
			t.Errorf("found %s, want %s", got, want)
		}
	}
	root := t.TempDir()
	for want, options := range map[string]Options{
		libraryName: {},
		"/there":    {LibraryPath: "/there", DriverRoot: root},
		filepath.Join(root, "usr/lib64", libraryName): {DriverRoot: root},
	} {
		if got := options.find(); got != want {
			t.Errorf("found %s, want %s", got, want)
		}
	}
}
