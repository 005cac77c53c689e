package cdi

import (
	"slices"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// written returns a device's edits as a container runtime finds them.
func written(t *testing.T, c Claim, d Device) specs.ContainerEdits {
	t.Helper()
	s, dir := newStore(t, fakeEdits{})
	if err := s.Write(c); err != nil {
		t.Fatal(err)
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	if errs := cache.GetErrors(); len(errs) > 0 {
		t.Fatalf("errors: %v", errs)
	}
	device := cache.GetDevice(DeviceID(c.UID, d))
	if device == nil {
		t.Fatalf("no device %s among %q", DeviceID(c.UID, d), cache.ListDevices())
	}
	return device.ContainerEdits
}

func TestShareByMPS(t *testing.T) {
	share := Device{Request: "r", Name: "mps-1b-00", ShareID: "share-1", GPU: "GPU-a", MPS: &MPS{
		Pipe: "/run/dovetail/mps/a/pipe", Shm: "/run/dovetail/mps/a/shm",
		ThreadPercentage: 25, Memory: []uint64{10 << 30, 0, 5 << 20}, LowPriority: true,
	}}
	other := share
	other.ShareID = "share-2"
	other.MPS = &MPS{Pipe: "/run/dovetail/mps/a/pipe/server/share-2", Shm: "/run/dovetail/mps/a/shm"}
	c := Claim{UID: "0b7c", Devices: []Device{share, other}}

	edits := written(t, c, share)
	want := []string{
		"DOVETAIL_MPS_1B_00=GPU-a", "CUDA_MPS_PIPE_DIRECTORY=/run/dovetail/mps/a/pipe",
		"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=10240M,2=5M", "CUDA_MPS_CLIENT_PRIORITY=1",
	}
	if !slices.Equal(edits.Env, want) {
		t.Errorf("environment %q", edits.Env)
	}
	if m := edits.Mounts; len(m) != 2 || m[0].HostPath != "/run/dovetail/mps/a/pipe" || m[0].ContainerPath != m[0].HostPath ||
		m[1].HostPath != "/run/dovetail/mps/a/shm" || m[1].ContainerPath != "/dev/shm" {
		t.Errorf("mounts %+v, %+v", m[0], m[1])
	} else if !slices.Contains(m[0].Options, "ro") || !slices.Contains(m[1].Options, "rw") {
		t.Errorf("the pipe directory is mounted %q, shm %q", m[0].Options, m[1].Options)
	}
	if env := written(t, c, other).Env; !slices.Equal(env, []string{"DOVETAIL_MPS_1B_00=GPU-a", "CUDA_MPS_PIPE_DIRECTORY=/run/dovetail/mps/a/pipe/server/share-2"}) {
		t.Errorf("environment of the other share %q", env)
	}
}

// TestMemoryLimitByTheDriver: shares of 10 and 20 GiB, of two GPUs, in one container.
func TestMemoryLimitByTheDriver(t *testing.T) {
	c := Claim{UID: "0b7c", Devices: []Device{
		{Request: "r", Name: "timeslice-1b-00", ShareID: "share-1", GPU: "GPU-a", MemoryLimit: 10<<30 + 1},
		{Request: "r", Name: "timeslice-43-00", ShareID: "share-2", GPU: "GPU-b", MemoryLimit: 20 << 30},
	}}
	container := &oci.Spec{}
	for _, d := range c.Devices {
		edits := written(t, c, d)
		if err := (&cdi.ContainerEdits{ContainerEdits: &edits}).Apply(container); err != nil {
			t.Fatal(err)
		}
	}
	want := [][]string{
		{"dovetail-hook", "memory-limit", "--driver-root=/run/nvidia/driver", "--gpu=GPU-a", "--share=timeslice-1b-00 of request r", "--bytes=10737418241"},
		{"dovetail-hook", "memory-limit", "--driver-root=/run/nvidia/driver", "--gpu=GPU-b", "--share=timeslice-43-00 of request r", "--bytes=21474836480"},
	}
	hooks := container.Hooks.CreateRuntime
	if len(hooks) != len(want) {
		t.Fatalf("hooks %+v", hooks)
	}
	for i, h := range hooks {
		if h.Path != "/opt/dovetail-hook" || !slices.Equal(h.Args, want[i]) {
			t.Errorf("hook %+v", h)
		}
	}
}
