package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
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

	e.must(e.Kube.CoreV1().Pods(e.namespace).Delete(e.ctx, "stubborn", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	claims := e.Kube.ResourceV1().ResourceClaims(e.namespace)
	e.must(claims.Delete(e.ctx, "held", metav1.DeleteOptions{}))
	_, err := claims.Patch(e.ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	e.must(err)

	e.pod("next", fromTemplate("one"))
	e.prepareFailed("next", deviceName(gpu), "still held for claim "+e.namespace+"/held")
	e.count(e.verify("next"), 1)
}

// grace is how long the kubelet waits for the containers to end.
func grace(seconds int64) option {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To(seconds) }
}
