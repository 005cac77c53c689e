package nvml_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// oldVariable names the library that this program describes as a child: it
// can open one library only.
const oldVariable = "NVML_TEST_OLD_LIBRARY"

func TestMain(m *testing.M) {
	if path := os.Getenv(oldVariable); path != "" {
		describeOld(path)
		return
	}
	os.Exit(m.Run())
}

func describeOld(path string) {
	gpus := nvml.New(nvml.Options{LibraryPath: path})
	d, err := gpus.Describe(context.Background())
	if err != nil {
		panic(err)
	}
	if err := gpus.Watch(context.Background(), func(hardware.Event) {}); !errors.Is(err, failure.Unsupported) {
		panic(err)
	}
	_, partitions := gpus.Partitions(context.Background(), "GPU-old")
	_, made := gpus.MakeGPUInstance(context.Background(), "GPU-old", 0, machine.Placement{Size: 8})
	_, limited := gpus.AddMemoryLimit(context.Background(), "GPU-old", "/", 1)
	for _, err := range []error{partitions, made, limited, gpus.SetMIGMode(context.Background(), "GPU-old", false)} {
		if !errors.Is(err, failure.Unsupported) {
			panic(err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(d); err != nil {
		panic(err)
	}
}

// TestOldDriver: a library that has the first functions of NVML and no newer
// ones, and supports hardly any of them, costs no GPU and no process.
func TestOldDriver(t *testing.T) {
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if output, err := exec.Command("cc", "-shared", "-fPIC", "-o", library, "testdata/old.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self)
	command.Env = append(os.Environ(), oldVariable+"="+library)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var got hardware.Description
	if err := json.Unmarshal(output, &got); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	want := hardware.Description{
		Driver: machine.Driver{Version: "450.51.06", CUDA: machine.Version{Major: 11}},
		GPUs: []machine.GPU{{
			UUID: "GPU-old", Address: machine.Address{Bus: 0x3b}, Minor: -1, Brand: "Unknown",
			Memory: machine.Memory{Total: 16 << 30}, ComputeMode: machine.ComputeModeDefault,
			MIG:      machine.MIG{Enabled: true, Pending: true}, // not to be offered whole
			Location: machine.Location{NUMANode: -1},
		}},
	}
	if len(got.Faults) != 1 || got.Faults[0].Kind != machine.FaultMIGUnusable || !strings.Contains(got.Faults[0].Message, "newer") {
		t.Errorf("faults %+v, want one that says that the GPU cannot be given out", got.Faults)
	}
	got.Faults = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("described as\n%+v, want\n%+v", got, want)
	}
}
