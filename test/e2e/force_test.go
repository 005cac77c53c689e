package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// TestForceDeleted: Pod and claim are deleted by force while the Pod's container
// still runs, so the API has forgotten who holds the GPU. Whoever is given it next
// is told, and starts once it is free.
func TestForceDeleted(t *testing.T) {
	e := alone(t)
	gpu := e.gpu(node1, 0)
	e.apply(byUUID(gpu.Spec.UUID))
	e.apply(claimOf(exclusive("held", gpu.Spec.UUID)))
	e.pod("stubborn", fromClaim("held"), args("-stay=8s"), grace(30))
	e.count(e.verify("stubborn"), 1)

	e.forceDelete("stubborn", "held")
	e.pod("next", fromTemplate("one"))
	e.prepareFailed("next", deviceName(gpu), "still held for claim "+e.namespace+"/held")
	e.count(e.verify("next"), 1)
}

// TestGoneMeanwhile: Pod and claim are deleted by force while no agent runs. The
// next agent releases what they held.
func TestGoneMeanwhile(t *testing.T) {
	e := alone(t)
	e.agentBack(node1)
	gpu := e.gpu(node1, 0)
	e.apply(byUUID(gpu.Spec.UUID))
	e.apply(claimOf(exclusive("held", gpu.Spec.UUID)))
	e.pod("train", fromClaim("held"))
	e.count(e.verify("train"), 1)

	e.agentOff(node1)
	e.forceDelete("train", "held")
	e.agentOn(node1)
	e.pod("next", fromTemplate("one"))
	e.count(e.verify("next"), 1)
	e.computeMode(node1, 0, machine.ComputeModeDefault)
}

// forceDelete deletes a Pod and its claim as impatient people do: the API forgets
// them at once, whatever still runs.
func (e *env) forceDelete(pod, claim string) {
	e.Helper()
	e.must(e.Kube.CoreV1().Pods(e.namespace).Delete(e.ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	claims := e.Kube.ResourceV1().ResourceClaims(e.namespace)
	e.must(claims.Delete(e.ctx, claim, metav1.DeleteOptions{}))
	// The controller may have been faster, once the Pod was gone.
	_, err := claims.Patch(e.ctx, claim, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		e.must(err)
	}
}

// grace is how long the kubelet waits for the containers to end.
func grace(seconds int64) option {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To(seconds) }
}
