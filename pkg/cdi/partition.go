package cdi

import (
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"k8s.io/utils/ptr"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/capability"
)

// Partition implements Edits. The capability nodes are described in full, so that
// the runtime makes them without a look at the host's /dev
// (docs/decisions/0013-capability-nodes.md).
func (n *NVIDIA) Partition(gpu string, gpuInstance, computeInstance int) (*specs.ContainerEdits, error) {
	parent, err := n.gpu(gpu)
	if err != nil {
		return nil, err
	}
	table, err := capability.Read(n.options.ProcRoot)
	if err != nil {
		return nil, err
	}
	nodes, err := table.Partition(parent.minor, gpuInstance, computeInstance)
	if err != nil {
		return nil, err
	}
	edits := *parent.edits
	edits.DeviceNodes = append([]*specs.DeviceNode(nil), edits.DeviceNodes...) // the parent's are kept
	for _, node := range nodes {
		edits.DeviceNodes = append(edits.DeviceNodes, &specs.DeviceNode{
			Path: node.Path, Type: "c", Major: int64(node.Major), Minor: int64(node.Minor),
			FileMode: ptr.To[os.FileMode](0o444), Permissions: "rw", // as the driver and its own runtime have them
		})
	}
	return &edits, nil
}

// minor is the N of the GPU's /dev/nvidiaN.
func (n *NVIDIA) minor(uuid string) (int, error) {
	lib := n.options.NVML()
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return 0, failure.New(failure.Absent, "minor number of GPU %s: NVML does not start: %s", uuid, ret)
	}
	defer lib.Shutdown() //nolint:errcheck // what it answers changes nothing
	device, ret := lib.DeviceGetHandleByUUID(uuid)
	if ret != nvml.SUCCESS {
		return 0, failure.New(failure.Absent, "minor number of GPU %s: %s", uuid, ret)
	}
	minor, ret := device.GetMinorNumber()
	if ret != nvml.SUCCESS {
		return 0, failure.New(failure.Absent, "minor number of GPU %s: %s", uuid, ret)
	}
	return minor, nil
}
