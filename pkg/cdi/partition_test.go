package cdi

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// TestContainerGetsItsPartitionAlone applies a specification as a container runtime
// does, before there is any capability node on the host.
func TestContainerGetsItsPartitionAlone(t *testing.T) {
	n, m := newNVIDIA(t, "dgx-h100")
	n.options.HostDriverRoot = m.Root() // the runtime looks at the host's nodes
	gpu := m.Spec().GPUs[3].UUID
	whole, err := n.GPU(gpu)
	if err != nil {
		t.Fatal(err)
	}
	before := nodes(whole)

	s, dir := newStore(t, n)
	device := Device{Request: "gpu", Name: "mig-52-00-1g10gb-4", GPU: gpu, Partition: &Partition{GPUMinor: m.Spec().GPUs[3].Minor, GPUInstance: 9, ComputeInstance: 1, UUID: "MIG-a"}}
	if err := s.Write(Claim{UID: "0b7c", Devices: []Device{device}}); err != nil {
		t.Fatal(err)
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	container := &oci.Spec{Linux: &oci.Linux{Resources: &oci.LinuxResources{}}}
	if _, err := cache.InjectDevices(container, DeviceID("0b7c", device)); err != nil {
		t.Fatal(err)
	}
	// The numbers are those of the driver's mig-minors: GPU 3 starts at 3 + 3·135,
	// its instance 9 at 9·9 more, and compute instance 1 comes two after it.
	const instance = 3 + 3*135 + 9*9
	want := []string{"/dev/nvidia-caps/nvidia-cap489", "/dev/nvidia-caps/nvidia-cap491", "/dev/nvidia3"}
	var own []string
	for _, d := range container.Linux.Devices {
		if slices.Contains(want, d.Path) {
			own = append(own, d.Path)
		} else if filepath.Dir(d.Path) == "/dev/nvidia-caps" {
			t.Errorf("the container gets %s", d.Path)
		}
		if minor := d.Minor; filepath.Dir(d.Path) == "/dev/nvidia-caps" &&
			(d.Type != "c" || d.Major != 511 || (minor != instance && minor != instance+2) || d.FileMode == nil || *d.FileMode != 0o444) {
			t.Errorf("%+v", d)
		}
	}
	if slices.Sort(own); !slices.Equal(own, want) {
		t.Errorf("devices %q, want %q", own, want)
	}
	var allowed []int64
	for _, rule := range container.Linux.Resources.Devices {
		if rule.Major != nil && *rule.Major == 511 && rule.Allow && rule.Access == "rw" {
			allowed = append(allowed, *rule.Minor)
		}
	}
	if !slices.Equal(allowed, []int64{instance, instance + 2}) {
		t.Errorf("the cgroup allows capabilities %v", allowed)
	}
	if whole, err = n.GPU(gpu); err != nil || !slices.Equal(nodes(whole), before) {
		t.Errorf("the whole GPU has %q now, %v", nodes(whole), err)
	}
}

func TestPartitionThatTheDriverDoesNotKnow(t *testing.T) {
	n, m := newNVIDIA(t, "t4")
	if _, err := n.Partition(m.Spec().GPUs[0].UUID, Partition{GPUInstance: 1}); !errors.Is(err, failure.Absent) {
		t.Errorf("a GPU without MIG: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(m.Root(), "proc/driver/nvidia-caps")); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Partition(m.Spec().GPUs[0].UUID, Partition{GPUInstance: 1}); !errors.Is(err, failure.Absent) {
		t.Errorf("a driver without MIG: %v", err)
	}
	if _, err := n.Partition("GPU-unknown", Partition{GPUInstance: 1}); err == nil {
		t.Error("an unknown GPU")
	}
}

// TestLookAtPartitions: an administrator's container gets the GPU, and what shows all
// partitions, where the driver has that.
func TestLookAtPartitions(t *testing.T) {
	n, m := newNVIDIA(t, "dgx-h100")
	gpu := m.Spec().GPUs[3].UUID
	look := Device{Request: "all", Name: "monitor-52-00", GPU: gpu, AdminAccess: true}
	paths := func() (found []string) {
		t.Helper()
		spec, err := build(Claim{UID: "0b7c", Devices: []Device{look}}, n, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range spec.Devices[0].ContainerEdits.DeviceNodes {
			found = append(found, node.Path)
			if node.Path == "/dev/nvidia-caps/nvidia-cap2" && (node.Type != "c" || node.Major != 511 || node.Minor != 2) {
				t.Errorf("%+v", node)
			}
		}
		return found
	}
	if got := paths(); !slices.Equal(got, []string{"/dev/nvidia3", "/dev/nvidia-caps/nvidia-cap2"}) {
		t.Errorf("nodes %q", got)
	}
	if whole, err := n.GPU(gpu); err != nil || len(whole.DeviceNodes) != 1 {
		t.Errorf("the whole GPU has %q, %v", nodes(whole), err)
	}
	if err := os.RemoveAll(filepath.Join(m.Root(), "proc/driver/nvidia-caps")); err != nil {
		t.Fatal(err)
	}
	if got := paths(); !slices.Equal(got, []string{"/dev/nvidia3"}) {
		t.Errorf("of a driver without MIG: nodes %q", got)
	}
}
