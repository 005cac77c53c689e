package admission

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slice of a node, in a pool.
func slice(name, driver, node, pool string) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
		Driver: driver, NodeName: ptr.To(node), Pool: resourceapi.ResourcePool{Name: pool, ResourceSliceCount: 1},
	}}
}

// ownNode: an agent publishes for its own node, in its own pool, and nothing else.
func (w *world) ownNode(t *testing.T) {
	agent := w.as(w.serviceAccount("dovetail-node", "node-1"))
	// The policy takes effect some moments after it was made.
	w.eventually("the policy is in force", func() bool {
		return agent.Create(t.Context(), slice("x", "dovetail.dev", "node-2", "node-2"), client.DryRunAll) != nil
	})
	everywhere := slice("all", "dovetail.dev", "", "node-1")
	everywhere.Spec.NodeName, everywhere.Spec.AllNodes = nil, ptr.To(true)
	for name, test := range map[string]struct {
		agent client.Client
		slice *resourceapi.ResourceSlice
		words []string
	}{
		"another node's":            {agent, slice("x", "dovetail.dev", "node-2", "node-2"), []string{`the agent of node "node-1" may not change a ResourceSlice of node "node-2"`}},
		"another node's pool":       {agent, slice("x", "dovetail.dev", "node-1", "node-2"), []string{`may not publish in the pool "node-2"`}},
		"another driver's":          {agent, slice("x", "gpu.example.com", "node-1", "node-1"), []string{`driver "gpu.example.com"`}},
		"every node's":              {agent, everywhere, []string{"of more than one node"}},
		"a token without a node":    {w.as(w.serviceAccount("dovetail-node", "")), slice("x", "dovetail.dev", "node-1", "node-1"), []string{"this token names no node"}},
		"its own":                   {agent, slice("x", "dovetail.dev", "node-1", "node-1"), nil},
		"who is no agent is let be": {w.Client, slice("x", "gpu.example.com", "node-2", "pool"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, test.agent.Create(t.Context(), test.slice, client.DryRunAll), test.words...)
		})
	}
	own, others := slice("own", "dovetail.dev", "node-1", "node-1"), slice("others", "dovetail.dev", "node-2", "node-2")
	w.must(agent.Create(t.Context(), own))
	w.must(w.Create(t.Context(), others))
	for _, test := range []struct {
		slice *resourceapi.ResourceSlice
		words []string
	}{{own, nil}, {others, []string{`of node "node-2"`}}} {
		test.slice.Spec.Pool.Generation++
		refused(t, agent.Update(t.Context(), test.slice), test.words...)
		refused(t, agent.Delete(t.Context(), test.slice), test.words...)
	}
}
