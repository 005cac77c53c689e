package cdi

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi"
	transformroot "github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi/transform/root"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// NVIDIA makes NVIDIA's edits with nvcdi. They take some 10 ms to build and hardly
// ever change, so they are kept until Reset.
type NVIDIA struct {
	options NVIDIAOptions

	mu     sync.Mutex // guards what follows
	common *specs.ContainerEdits
	gpus   map[string]*specs.ContainerEdits
}

// NVIDIAOptions say where things are.
type NVIDIAOptions struct {
	// NVML returns the library as it is found now: the driver may come later.
	NVML func() nvml.Interface
	// DriverRoot is the root of the driver's installation as this process sees
	// it; HostDriverRoot is the same directory as the host sees it.
	DriverRoot     string
	HostDriverRoot string
	// HookPath is nvidia-cdi-hook on the host.
	HookPath string
}

// NewNVIDIA reads nothing yet: the driver may come later.
func NewNVIDIA(options NVIDIAOptions) *NVIDIA {
	return &NVIDIA{options: options, gpus: map[string]*specs.ContainerEdits{}}
}

// Reset forgets what was built. To be called when the driver changes.
func (n *NVIDIA) Reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.common = nil
	clear(n.gpus)
}

// Common implements Edits.
func (n *NVIDIA) Common() (*specs.ContainerEdits, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.common != nil {
		return n.common, nil
	}
	lib, err := n.lib()
	if err != nil {
		return nil, err
	}
	edits, err := lib.GetCommonEdits()
	if err != nil {
		return nil, failure.New(failure.Absent, "driver files below %s: %w", n.options.HostDriverRoot, err)
	}
	n.common, err = n.onHost(edits.ContainerEdits)
	return n.common, err
}

// GPU implements Edits. What is kept is only used while its device nodes are
// there: on a fresh node they appear with the first use of the driver.
func (n *NVIDIA) GPU(uuid string) (*specs.ContainerEdits, error) {
	n.mu.Lock()
	known := n.gpus[uuid]
	n.mu.Unlock()
	if known != nil && n.haveNodes(known) {
		return known, nil
	}
	lib, err := n.lib()
	if err != nil {
		return nil, err
	}
	devices, err := lib.GetDeviceSpecsByID(uuid)
	if err != nil || len(devices) != 1 || len(devices[0].ContainerEdits.DeviceNodes) == 0 {
		return nil, failure.New(failure.Absent,
			"GPU %s has no device node below %s/dev: %w; run nvidia-smi or `nvidia-modprobe -c0 -u` on the node",
			uuid, n.options.HostDriverRoot, orNone(err))
	}
	edits, err := n.onHost(&devices[0].ContainerEdits)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gpus[uuid] = edits
	return edits, nil
}

func orNone(err error) error {
	if err == nil {
		return fmt.Errorf("none found")
	}
	return err
}

func (n *NVIDIA) lib() (nvcdi.Interface, error) {
	lib, err := nvcdi.New(
		nvcdi.WithNvmlLib(n.options.NVML()),
		nvcdi.WithMode(nvcdi.ModeNvml),
		nvcdi.WithDriverRoot(n.options.DriverRoot),
		nvcdi.WithNVIDIACDIHookPath(n.options.HookPath),
		nvcdi.WithFeatureFlags(nvcdi.FeatureDisableNvsandboxUtils, nvcdi.FeatureDisableIPCDiscoverer),
		nvcdi.WithLogger(quiet{}),
	)
	if err != nil {
		return nil, fmt.Errorf("set up nvcdi: %w", err)
	}
	return lib, nil
}

// onHost turns paths below DriverRoot into the host's.
func (n *NVIDIA) onHost(edits *specs.ContainerEdits) (*specs.ContainerEdits, error) {
	spec := &specs.Spec{ContainerEdits: *edits}
	err := transformroot.New(
		transformroot.WithRoot(n.options.DriverRoot),
		transformroot.WithTargetRoot(n.options.HostDriverRoot),
		transformroot.WithRelativeTo("host"),
	).Transform(spec)
	if err != nil {
		return nil, fmt.Errorf("translate %s to %s: %w", n.options.DriverRoot, n.options.HostDriverRoot, err)
	}
	return &spec.ContainerEdits, nil
}

func (n *NVIDIA) haveNodes(edits *specs.ContainerEdits) bool {
	for _, node := range edits.DeviceNodes {
		host := node.HostPath
		if host == "" {
			host = node.Path
		}
		below, err := filepath.Rel(n.options.HostDriverRoot, host)
		if err != nil {
			return false
		}
		if _, err := os.Stat(filepath.Join(n.options.DriverRoot, below)); err != nil {
			return false
		}
	}
	return len(edits.DeviceNodes) > 0
}

// quiet drops nvcdi's log: it warns of each optional file that a driver lacks.
type quiet struct{}

func (quiet) Debugf(string, ...any)   {}
func (quiet) Infof(string, ...any)    {}
func (quiet) Warningf(string, ...any) {}
func (quiet) Errorf(string, ...any)   {}
func (quiet) Tracef(string, ...any)   {}
