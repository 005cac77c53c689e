package cdi

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/nvml"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// hostRoot is where the host would have what the test has below a temporary root.
const hostRoot = "/run/nvidia/driver"

func newNVIDIA(t *testing.T, machine string) (*NVIDIA, *simulatortest.Machine) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("device nodes can only be made by root")
	}
	m := simulatortest.NewWithLibrary(t, machine)
	gpus := nvml.New(nvml.Options{DriverRoot: m.Root()})
	t.Cleanup(func() { _ = gpus.Close() })
	return NewNVIDIA(NVIDIAOptions{
		NVML: gpus.NVML, DriverRoot: m.Root(), HostDriverRoot: hostRoot, HookPath: "/opt/nvidia-cdi-hook",
		ProcRoot: filepath.Join(m.Root(), "proc"),
	}), m
}

func nodes(edits *specs.ContainerEdits) []string {
	var paths []string
	for _, n := range edits.DeviceNodes {
		paths = append(paths, n.HostPath+" as "+n.Path)
	}
	slices.Sort(paths)
	return paths
}

func TestNVIDIAEditsAreTheHosts(t *testing.T) {
	n, m := newNVIDIA(t, "dgx-h100")
	common, err := n.Common()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := nodes(common), []string{
		"/run/nvidia/driver/dev/nvidia-modeset as /dev/nvidia-modeset",
		"/run/nvidia/driver/dev/nvidia-uvm as /dev/nvidia-uvm",
		"/run/nvidia/driver/dev/nvidia-uvm-tools as /dev/nvidia-uvm-tools",
		"/run/nvidia/driver/dev/nvidiactl as /dev/nvidiactl",
	}; !slices.Equal(got, want) {
		t.Errorf("control nodes %q", got)
	}
	var libraries int
	for _, mount := range common.Mounts {
		if mount.HostPath == "/dev/null" {
			continue // nvcdi's mark that CDI is in charge
		}
		if !strings.HasPrefix(mount.HostPath, hostRoot+"/") || strings.HasPrefix(mount.ContainerPath, hostRoot) {
			t.Errorf("mount of %s at %s", mount.HostPath, mount.ContainerPath)
		}
		if strings.Contains(mount.ContainerPath, ".so.") {
			libraries++
		}
	}
	if libraries == 0 {
		t.Error("no library is mounted")
	}
	for _, hook := range common.Hooks {
		if hook.Path != "/opt/nvidia-cdi-hook" {
			t.Errorf("hook %s", hook.Path)
		}
	}

	gpu, err := n.GPU(m.Spec().GPUs[3].UUID)
	if err != nil {
		t.Fatal(err)
	}
	if got := nodes(gpu); !slices.Equal(got, []string{"/run/nvidia/driver/dev/nvidia3 as /dev/nvidia3"}) {
		t.Errorf("nodes of the fourth GPU %q", got)
	}
}

// A fresh node has no device nodes yet: that is an error, and not remembered.
func TestMissingDeviceNodeIsNotRemembered(t *testing.T) {
	n, m := newNVIDIA(t, "t4")
	uuid := m.Spec().GPUs[0].UUID
	node := filepath.Join(m.Root(), "dev", "nvidia0")
	for range 2 { // never there, and gone after it was there
		if err := os.Remove(node); err != nil {
			t.Fatal(err)
		}
		if _, err := n.GPU(uuid); !errors.Is(err, failure.Absent) || !strings.Contains(err.Error(), "nvidia-modprobe") {
			t.Errorf("without the node: %v", err)
		}
		m.Sync()
		if _, err := n.GPU(uuid); err != nil {
			t.Errorf("with the node: %v", err)
		}
	}
}

func TestMissingControlNodeIsNotRemembered(t *testing.T) {
	n, m := newNVIDIA(t, "t4")
	for _, node := range []string{"nvidia-uvm", "nvidiactl"} {
		for range 2 { // never there, and gone after it was there
			if err := os.Remove(filepath.Join(m.Root(), "dev", node)); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Common(); !errors.Is(err, failure.Absent) || !strings.Contains(err.Error(), "/dev/"+node) {
				t.Errorf("without %s: %v", node, err)
			}
			m.Sync()
			if _, err := n.Common(); err != nil {
				t.Errorf("with %s: %v", node, err)
			}
		}
	}
}

func TestDriverThatComesLater(t *testing.T) {
	n, m := newNVIDIA(t, "t4")
	if err := m.SetDriver(simulator.DriverUnloaded); err != nil {
		t.Fatal(err)
	}
	uuid := m.Spec().GPUs[0].UUID
	if _, err := n.GPU(uuid); !errors.Is(err, failure.Absent) {
		t.Errorf("without a driver: %v", err)
	}
	if err := m.SetDriver(simulator.DriverLoaded); err != nil {
		t.Fatal(err)
	}
	if _, err := n.GPU(uuid); err != nil {
		t.Error(err)
	}
	n.Reset()
	if len(n.kept) > 0 {
		t.Error("Reset keeps something")
	}
}
