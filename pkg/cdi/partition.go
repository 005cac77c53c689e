package cdi

import (
	"os"
	"slices"

	"k8s.io/utils/ptr"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/hardware/capability"
)

// Partition implements Edits.
func (n *NVIDIA) Partition(gpu string, p Partition) (*specs.ContainerEdits, error) {
	parent, err := n.GPU(gpu)
	if err != nil {
		return nil, err
	}
	table, err := capability.Read(n.options.ProcRoot)
	if err != nil {
		return nil, err
	}
	nodes, err := table.Partition(p.GPUMinor, p.GPUInstance, p.ComputeInstance)
	if err != nil {
		return nil, err
	}
	return withNodes(parent, nodes...), nil
}

// Monitor implements Edits. A driver whose capabilities cannot be read costs nobody the
// look at the GPU itself.
func (n *NVIDIA) Monitor(gpu string) (*specs.ContainerEdits, error) {
	edits, err := n.GPU(gpu)
	if err != nil {
		return nil, err
	}
	table, err := capability.Read(n.options.ProcRoot)
	if err != nil {
		return edits, nil //nolint:nilerr // as said above
	}
	if node, ok := table.Monitor(); ok {
		edits = withNodes(edits, node)
	}
	return edits, nil
}

// withNodes adds capability nodes to edits that are kept. They are described in full, so
// that the runtime makes them without a look at the host's /dev
// (docs/decisions/0013-capability-nodes.md).
func withNodes(kept *specs.ContainerEdits, nodes ...capability.Node) *specs.ContainerEdits {
	edits := *kept
	edits.DeviceNodes = slices.Clone(edits.DeviceNodes)
	for _, node := range nodes {
		edits.DeviceNodes = append(edits.DeviceNodes, &specs.DeviceNode{
			Path: node.Path, Type: "c", Major: int64(node.Major), Minor: int64(node.Minor),
			FileMode: ptr.To[os.FileMode](0o444), Permissions: "rw", // as the driver and its own runtime have them
		})
	}
	return &edits
}
