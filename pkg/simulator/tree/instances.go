package tree

import (
	"fmt"
	"path"
	"path/filepath"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// instances renders the capabilities of a GPU's instances, in proc.
func (w *writer) instances(g simulator.GPU) {
	mig := fmt.Sprintf("proc/driver/nvidia/capabilities/gpu%d/mig", g.Spec.Minor)
	keep := map[string]bool{}
	for _, in := range g.Instances {
		dir := fmt.Sprintf("%s/gi%d", mig, in.ID)
		keep[dir] = true
		w.capability(dir+"/access", g.Capability(in.ID))
		for _, ci := range in.ComputeInstances {
			ciDir := fmt.Sprintf("%s/ci%d", dir, ci.ID)
			keep[ciDir] = true
			w.capability(ciDir+"/access", g.Capability(in.ID, ci.ID))
		}
	}
	w.removeMatching(mig+"/gi*", keep)
	w.removeMatching(mig+"/gi*/ci*", keep)
}

// capabilityNodes are the device nodes of a GPU's instances.
func capabilityNodes(g simulator.GPU) []node {
	var nodes []node
	add := func(minor int) { nodes = append(nodes, node{simulator.CapabilityNode(minor), majorCaps, minor}) }
	for _, in := range g.Instances {
		add(g.Capability(in.ID))
		for _, ci := range in.ComputeInstances {
			add(g.Capability(in.ID, ci.ID))
		}
	}
	return nodes
}

// removeOldNodes takes away the nodes of instances that the GPU no longer has.
func (w *writer) removeOldNodes(g simulator.GPU) {
	keep := map[string]bool{}
	for _, n := range capabilityNodes(g) {
		keep[n.name] = true
	}
	found, err := filepath.Glob(w.path(path.Dir(simulator.CapabilityNode(0)) + "/*"))
	w.check(err)
	for _, file := range found {
		name, err := filepath.Rel(w.root, file)
		var minor int
		if _, scanErr := fmt.Sscanf(path.Base(name), "nvidia-cap%d", &minor); !w.check(err) || scanErr != nil {
			continue
		}
		ours := minor >= g.Capability(0) && minor < g.Capability(simulator.CapabilityGPUInstances)
		if ours && !keep[name] {
			w.remove(name)
		}
	}
}
