package simulator

import (
	"fmt"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// MIG's device capabilities have fixed minor numbers: config and monitor, and from 3 on,
// for each GPU, 15 GPU instances with 8 compute instances each.
const (
	CapabilityConfig           = 1
	CapabilityMonitor          = 2
	CapabilityGPUInstances     = 15
	CapabilityComputeInstances = 8
)

// Capability is the minor number of what gives access to a GPU instance, or to a
// compute instance of it.
func (g GPU) Capability(gpuInstance int, computeInstance ...int) int {
	minor := 3 + (g.Spec.Minor*CapabilityGPUInstances+gpuInstance)*(1+CapabilityComputeInstances)
	for _, ci := range computeInstance {
		minor += 1 + ci
	}
	return minor
}

// CapabilityNode is the device node of a capability, below the machine's root.
func CapabilityNode(minor int) string { return fmt.Sprintf("dev/nvidia-caps/nvidia-cap%d", minor) }

// Nodes are the device nodes that a process opens for the GPU, or for its GPU instance
// with that ID, or for that one's compute instance. They need not exist.
func (g GPU) Nodes(instance ...int) ([]string, error) {
	if len(instance) == 0 {
		return []string{fmt.Sprintf("dev/nvidia%d", g.Spec.Minor)}, nil
	}
	in, err := g.instance(instance[0])
	if err != nil {
		return nil, err
	}
	nodes := []string{CapabilityNode(g.Capability(in.ID))}
	for _, id := range instance[1:] {
		if !slices.ContainsFunc(in.ComputeInstances, func(c machine.ComputeInstance) bool { return c.ID == id }) {
			return nil, failure.New(failure.Absent, "GPU %s: GPU instance %d has no compute instance %d", g.Spec.UUID, in.ID, id)
		}
		nodes = append(nodes, CapabilityNode(g.Capability(in.ID, id)))
	}
	return nodes, nil
}
