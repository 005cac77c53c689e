package cdi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi"
	transformroot "github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi/transform/root"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/patience"
)

// NVIDIA makes NVIDIA's edits with nvcdi. They take some 10 ms to build and hardly
// ever change, so they are kept until Reset; and only used while all of their
// device nodes are there: on a fresh node these appear with the driver's first use.
type NVIDIA struct {
	options NVIDIAOptions
	calls   patience.Calls // by GPU: nvcdi asks NVML, which a sick GPU can hang

	mu     sync.Mutex // guards what follows
	resets int
	kept   map[string]*specs.ContainerEdits // by UUID; common is those of all
}

// common stands for all GPUs where a UUID is wanted.
const common = ""

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
	// Hook is Dovetail's own.
	Hook Hook
	// NodeRoot is the host's directory that has the RDMA devices' /dev. Default: /.
	NodeRoot string
	// ProcRoot is the host's /proc, where the driver lists MIG's capabilities.
	ProcRoot string
}

// NewNVIDIA reads nothing yet: the driver may come later.
func NewNVIDIA(options NVIDIAOptions) *NVIDIA {
	return &NVIDIA{options: options, kept: map[string]*specs.ContainerEdits{}}
}

// Reset forgets what was built. To be called when the driver, or a GPU, changes.
func (n *NVIDIA) Reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.resets++
	clear(n.kept)
}

// Common implements Edits.
func (n *NVIDIA) Common() (*specs.ContainerEdits, error) {
	return n.get(common, n.buildCommon)
}

// GPU implements Edits.
func (n *NVIDIA) GPU(uuid string) (*specs.ContainerEdits, error) {
	return n.get(uuid, func() (*specs.ContainerEdits, error) { return n.buildGPU(uuid) })
}

// get returns what is kept where that is still right, and builds it otherwise.
func (n *NVIDIA) get(uuid string, build func() (*specs.ContainerEdits, error)) (*specs.ContainerEdits, error) {
	n.mu.Lock()
	kept, resets := n.kept[uuid], n.resets
	n.mu.Unlock()
	if kept != nil && n.haveNodes(kept) {
		return kept, nil
	}
	var edits *specs.ContainerEdits
	thing := "GPU " + uuid
	if uuid == common {
		thing = "the driver"
	}
	if err := n.calls.Do(thing, func() (err error) {
		edits, err = build()
		return err
	}); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.resets == resets { // else it may be of the driver that was
		n.kept[uuid] = edits
	}
	return edits, nil
}

// controlNodes are what CUDA does not work without. nvcdi leaves out what is not
// there, without a word.
var controlNodes = []string{"/dev/nvidiactl", "/dev/nvidia-uvm"}

const makeNodes = "run nvidia-smi or `nvidia-modprobe -c0 -u` on the node"

func (n *NVIDIA) buildCommon() (*specs.ContainerEdits, error) {
	lib, err := n.lib()
	if err != nil {
		return nil, err
	}
	edits, err := lib.GetCommonEdits()
	if err != nil {
		return nil, failure.New(failure.Absent, "driver files below %s: %w", n.options.HostDriverRoot, err)
	}
	for _, path := range controlNodes {
		if !slices.ContainsFunc(edits.DeviceNodes, func(d *specs.DeviceNode) bool { return d.Path == path }) {
			return nil, failure.New(failure.Absent, "%s is not there below %s: %s", path, n.options.HostDriverRoot, makeNodes)
		}
	}
	return n.onHost(edits.ContainerEdits)
}

func (n *NVIDIA) buildGPU(uuid string) (*specs.ContainerEdits, error) {
	lib, err := n.lib()
	if err != nil {
		return nil, err
	}
	devices, err := lib.GetDeviceSpecsByID(uuid)
	switch {
	case err != nil:
		return nil, failure.New(failure.Absent, "GPU %s, below %s: %w; where its device node is missing, %s", uuid, n.options.HostDriverRoot, err, makeNodes)
	case len(devices) != 1 || len(devices[0].ContainerEdits.DeviceNodes) == 0:
		return nil, failure.New(failure.Absent, "GPU %s has no device node below %s/dev: %s", uuid, n.options.HostDriverRoot, makeNodes)
	}
	return n.onHost(&devices[0].ContainerEdits)
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
