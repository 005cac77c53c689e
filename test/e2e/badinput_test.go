package e2e

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// TestBadParameters: what the driver does not know is refused, with field, value
// and cure in the Pod's event. Nothing is recorded, nothing is changed.
func TestBadParameters(t *testing.T) {
	tests := []struct {
		name       string
		parameters string
		words      []string
	}{
		{"unknown kind", "{apiVersion: dovetail.dev/v1alpha1, kind: GPUSettings}",
			[]string{"kind", `"GPUSettings"`, "want GPUConfig, NICConfig or PairConfig in dovetail.dev/v1alpha1"}},
		{"unknown version", "{apiVersion: dovetail.dev/v9, kind: GPUConfig}",
			[]string{"dovetail.dev/v9", "want GPUConfig, NICConfig or PairConfig in dovetail.dev/v1alpha1"}},
		{"unknown field", "{apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, computMode: ExclusiveProcess}",
			[]string{`unknown field "computMode"`, "correct or remove the field"}},
		{"value out of range", "{apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, computeMode: Prohibited}",
			[]string{"computeMode", `"Prohibited"`, `supported values: "Default", "ExclusiveProcess"`}},
		{"wrong type", "{apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, computeMode: 3}",
			[]string{"computeMode"}},
	}
	var all []claimTest
	for _, test := range tests {
		all = append(all, refused(test.name, configured("bad", "", test.parameters), append(test.words, "the claim's spec.devices.config")...))
	}
	sideBySide(t, unchecked, all)
}

// refused is a test of a template "bad" whose claim node1's agent refuses, in such words.
func refused(name, manifest string, words ...string) claimTest {
	return claimTest{name, manifest, func(e *env) {
		e.pod("train", on(node1), fromTemplate("bad"))
		e.prepareFailed("train", words...)
		e.untouched(node1, e.claimOfPod("train"))
	}}
}

// TestBadAllocation: a claim that names devices which this node does not have.
func TestBadAllocation(t *testing.T) {
	tests := []struct {
		name         string
		pool, device string
		words        []string
	}{
		{"another node's pool", node2, "gpu-25-00", []string{"status.allocation.devices.results[0].pool", `"` + node2 + `" is another node's pool`, "delete the Pod"}},
		{"no such device", node1, "gpu-ff-00", []string{"gpu-ff-00 is not on this node", "delete the claim"}},
	}
	var all []claimTest
	for _, test := range tests {
		all = append(all, claimTest{test.name, "", func(e *env) {
			e.allocateByHand(exclusive("bad", ""), "bad", resourceapi.DeviceRequestAllocationResult{Pool: test.pool, Device: test.device})
			e.pod("train", fromClaim("bad"), bound(node1))
			e.prepareFailed("train", test.words...)
			e.untouched(node1, e.claimOfPod("train"))
		}})
	}
	sideBySide(t, nil, all)
}

// untouched: a claim that was refused has left nothing on the node.
func (e *env) untouched(node string, claim *resourceapi.ResourceClaim) {
	e.Helper()
	s, err := e.Snapshot(e.ctx, node)
	e.must(err)
	uid := string(claim.UID)
	if s.Claims()[uid] || s.Specs()[uid] {
		e.Errorf("claim %s was refused, but has left a record or a CDI specification", claim.Name)
	}
	for i, gpu := range s.Machine.GPUs {
		if gpu.ComputeMode != machine.ComputeModeDefault {
			e.Errorf("GPU %d is in compute mode %s", i, gpu.ComputeMode)
		}
	}
}
