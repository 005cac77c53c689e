package cdi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// fakeEdits has one node and one library, as nvcdi would.
type fakeEdits struct{ err error }

func (f fakeEdits) Common() (*specs.ContainerEdits, error) {
	return &specs.ContainerEdits{
		Env:         []string{"NVIDIA_CTK_LIBCUDA_DIR=/usr/lib64"},
		DeviceNodes: []*specs.DeviceNode{{Path: "/dev/null"}},
	}, f.err
}

func (f fakeEdits) GPU(uuid string) (*specs.ContainerEdits, error) {
	return &specs.ContainerEdits{DeviceNodes: []*specs.DeviceNode{{Path: "/dev/" + uuid, HostPath: "/dev/zero"}}}, f.err
}

func (f fakeEdits) Partition(gpu string, p Partition) (*specs.ContainerEdits, error) {
	return f.GPU(fmt.Sprintf("%s/%d/%d/%d", gpu, p.GPUMinor, p.GPUInstance, p.ComputeInstance))
}

func (f fakeEdits) Monitor(gpu string) (*specs.ContainerEdits, error) { return f.GPU(gpu + "/monitor") }

func (f fakeEdits) MemoryLimit(d Device) *specs.ContainerEdits {
	return (&NVIDIA{options: NVIDIAOptions{Hook: Hook{Path: "/opt/dovetail-hook"}, HostDriverRoot: "/run/nvidia/driver"}}).MemoryLimit(d)
}

func (f fakeEdits) NIC(nic *NIC) (*specs.ContainerEdits, error) {
	return (&NVIDIA{options: NVIDIAOptions{Hook: Hook{Path: "/opt/dovetail-hook"}}}).NIC(nic)
}

var example = Claim{
	UID: "0b7c",
	Devices: []Device{
		{Request: "gpu/large", Name: "gpu-1b-00", GPU: "GPU-a"},
		{Request: "other", Name: "gpu-43-00", GPU: "GPU-b"},
	},
	Record: []byte(`{"version":1}`),
}

func newStore(t *testing.T, edits Edits) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cdi")
	s, err := NewStore(dir, filepath.Join(filepath.Dir(dir), "nccl"), edits)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// TestRuntimeFindsDevices reads what was written as a container runtime does.
func TestRuntimeFindsDevices(t *testing.T) {
	s, dir := newStore(t, fakeEdits{})
	if err := s.Write(example); err != nil {
		t.Fatal(err)
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	if errs := cache.GetErrors(); len(errs) > 0 {
		t.Errorf("errors: %v", errs)
	}
	want := []string{"dovetail.dev/claim=0b7c_gpu.large_gpu-1b-00", "dovetail.dev/claim=0b7c_other_gpu-43-00"}
	if got := cache.ListDevices(); !slices.Equal(got, want) {
		t.Errorf("devices %q", got)
	}
	for i, id := range want {
		if got := DeviceID(example.UID, example.Devices[i]); got != id {
			t.Errorf("DeviceID %q, want %q", got, id)
		}
	}
	device := cache.GetDevice(want[0])
	if env := device.ContainerEdits.Env; !slices.Equal(env, []string{"DOVETAIL_GPU_1B_00=GPU-a"}) {
		t.Errorf("environment %q", env)
	}
	if nodes := device.ContainerEdits.DeviceNodes; len(nodes) != 1 || nodes[0].Path != "/dev/GPU-a" {
		t.Errorf("device nodes %+v", nodes)
	}
	if env := device.GetSpec().ContainerEdits.Env; len(env) == 0 || env[0] != "NVIDIA_VISIBLE_DEVICES=void" {
		t.Errorf("environment of all %q", env)
	}
}

func TestPartitionIsNotItsGPU(t *testing.T) {
	s, dir := newStore(t, fakeEdits{})
	partition := Device{Request: "small", Name: "mig-1b-00-1g10gb-4", GPU: "GPU-a", Partition: &Partition{GPUMinor: 3, GPUInstance: 9, ComputeInstance: 2, UUID: "MIG-a"}}
	whole := Device{Request: "large", Name: "gpu-43-00", GPU: "GPU-b"}
	if err := s.Write(Claim{UID: "0b7c", Devices: []Device{partition, whole}}); err != nil {
		t.Fatal(err)
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	edits := cache.GetDevice(DeviceID("0b7c", partition)).ContainerEdits
	if !slices.Equal(edits.Env, []string{"DOVETAIL_MIG_1B_00_1G10GB_4=MIG-a"}) {
		t.Errorf("environment %q", edits.Env)
	}
	if len(edits.DeviceNodes) != 1 || edits.DeviceNodes[0].Path != "/dev/GPU-a/3/9/2" {
		t.Errorf("device nodes %+v", edits.DeviceNodes)
	}
	if env := cache.GetDevice(DeviceID("0b7c", whole)).ContainerEdits.Env; !slices.Equal(env, []string{"DOVETAIL_GPU_43_00=GPU-b"}) {
		t.Errorf("environment of the whole GPU %q", env)
	}
}

func TestWriteAgainWritesNothing(t *testing.T) {
	s, dir := newStore(t, fakeEdits{})
	stat := func() os.FileInfo {
		if err := s.Write(example); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "dovetail.dev-claim-0b7c.json"))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if first, second := stat(), stat(); !os.SameFile(first, second) {
		t.Error("the file was replaced by the same")
	}
	if err := os.RemoveAll(dir); err != nil { // a reboot
		t.Fatal(err)
	}
	stat()
}

func TestRecordComesBack(t *testing.T) {
	s, dir := newStore(t, fakeEdits{})
	if _, err := s.Record("0b7c"); !errors.Is(err, failure.Absent) {
		t.Errorf("before: %v", err)
	}
	if err := s.Write(example); err != nil {
		t.Fatal(err)
	}
	if record, err := s.Record("0b7c"); err != nil || string(record) != `{"version":1}` {
		t.Errorf("record %q, %v", record, err)
	}
	if uids, err := s.Claims(); err != nil || !slices.Equal(uids, []string{"0b7c"}) {
		t.Errorf("claims %q, %v", uids, err)
	}
	for _, damage := range []string{"", "{", `{"cdiVersion":"1.0.0"}`} {
		if err := os.WriteFile(filepath.Join(dir, "dovetail.dev-claim-0b7c.json"), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Record("0b7c"); !errors.Is(err, failure.Corrupt) {
			t.Errorf("damage %q: %v", damage, err)
		}
	}
}

func TestALostGPUKeepsNoAdministratorFromTheOthers(t *testing.T) {
	s, _ := newStore(t, lostGPU{})
	c := Claim{UID: "0b7c", Devices: []Device{{Request: "all", Name: "monitor-1b-00", GPU: "GPU-lost", AdminAccess: true}, {Request: "all", Name: "monitor-43-00", GPU: "GPU-b", AdminAccess: true}}}
	if err := s.Write(c); err != nil {
		t.Error(err)
	}
	c.Devices[0].AdminAccess = false
	if err := s.Write(c); err == nil {
		t.Error("a tenant gets a lost GPU")
	}
}

// lostGPU cannot describe one of its GPUs.
type lostGPU struct{ fakeEdits }

func (l lostGPU) GPU(uuid string) (*specs.ContainerEdits, error) {
	if uuid == "GPU-lost" {
		return nil, errors.New("lost")
	}
	return l.fakeEdits.GPU(uuid)
}

func (l lostGPU) Monitor(uuid string) (*specs.ContainerEdits, error) { return l.GPU(uuid) }

func TestNothingIsWrittenWithoutEdits(t *testing.T) {
	s, dir := newStore(t, fakeEdits{err: errors.New("no driver")})
	if err := s.Write(example); err == nil {
		t.Error("no error")
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("files: %v", files)
	}
	for range 2 {
		if err := s.Remove("0b7c"); err != nil {
			t.Error(err)
		}
	}
}
