package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestWebhook: the API server asks the controller, by the certificate that it has made
// for itself; and nobody waits long when there is no controller.
func TestWebhook(t *testing.T) {
	e := alone(t)
	const refusal = "spec.devices.requests[0].exactly.capacity.requests[memory]: 0 is too little: the nearest that works is 1Mi"
	e.eventually("a share without memory is refused", func() bool {
		err := e.tryOut("0")
		return err != nil && strings.Contains(err.Error(), refusal)
	})
	e.must(e.tryOut("1Gi"))

	e.replicas(0)
	e.afterwards(func() { e.replicas(1) })
	start := time.Now()
	e.must(e.tryOut("0"))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("without a controller, a claim takes %s", took)
	}
	e.replicas(1)
	e.eventually("it is refused again", func() bool { return e.tryOut("0") != nil })
}

// tryOut makes a claim for a share with so much memory, without keeping it.
func (e *env) tryOut(memory string) error {
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "share"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "mps.dovetail.dev", Capacity: &resourceapi.CapacityRequirements{
				Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)},
			}},
		}}}},
	}
	_, err := e.Kube.ResourceV1().ResourceClaims(e.namespace).Create(e.ctx, claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// replicas of the controller, and no more than that.
func (e *env) replicas(n int) {
	e.Helper()
	_, err := e.Kube.AppsV1().Deployments(harness.Namespace).Patch(e.ctx, harness.Release+"-controller", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{})
	e.must(err)
	_, err = harness.Wait(e.ctx, harness.Set{Client: e.Kube.CoreV1().RESTClient(), Resource: "pods", Namespace: harness.Namespace},
		fmt.Sprintf("%d replicas of the controller", n), func(pods []*corev1.Pod) (bool, error) {
			found := 0
			for _, p := range pods {
				if p.Labels["app.kubernetes.io/component"] == "controller" {
					found++
				}
			}
			return found == n, nil
		})
	e.must(err)
}

// eventually waits for what no watch tells.
func (e *env) eventually(what string, ok func() bool) {
	e.Helper()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-e.ctx.Done():
			e.Fatalf("never: %s", what)
		}
	}
}
