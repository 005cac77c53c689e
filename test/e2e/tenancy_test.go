package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// quota of devices, by DeviceClass.
const quota = `
apiVersion: v1
kind: ResourceQuota
metadata: {name: devices}
spec:
  hard:
    share.deviceclass.resource.k8s.io/devices: "1"
    gpu.dovetail.dev.deviceclass.resource.k8s.io/devices: "0"
`

// TestQuota: a namespace has as many devices of a class as its quota says, whether it asks
// by a claim or by the extended resource; another's are not counted.
func TestQuota(t *testing.T) {
	e := withClasses(t)
	other := start(t, nil)
	e.class("share", "{shape: {mps: {memory: 5Gi}}, hardware: {products: ['NVIDIA L4']}, extendedResourceName: example.com/gpu-share}")
	e.apply(quota)
	quotas := harness.Set{Client: e.Kube.CoreV1().RESTClient(), Resource: "resourcequotas", Namespace: e.namespace}
	used := func(resource corev1.ResourceName, want string) {
		t.Helper()
		_, err := harness.WaitOne(e.ctx, quotas, "devices", fmt.Sprintf("the quota to count %s of %s", want, resource), func(q *corev1.ResourceQuota) (bool, error) {
			got, counted := q.Status.Used[resource]
			return counted && got.String() == want, nil
		})
		e.must(err)
	}
	used("share.deviceclass.resource.k8s.io/devices", "0")

	e.apply(claimOf(template("first", "{deviceClassName: share}")))
	e.overQuota("second", "{deviceClassName: share}", "share.deviceclass.resource.k8s.io/devices=1", "limited")
	e.overQuota("whole", gpuRequest, "gpu.dovetail.dev.deviceclass.resource.k8s.io/devices=0")
	e.pod("infer", fromClaim("first"), fills("4G", "2G"))
	e.limited("infer")
	used("share.deviceclass.resource.k8s.io/devices", "1")

	other.apply(claimOf(template("first", "{deviceClassName: share}")))
	other.pod("infer", fromClaim("first"), fills("4G", "2G"))
	other.limited("infer")
	other.must(other.DeletePods(other.ctx, other.namespace))

	e.gone("infer")
	e.must(e.Kube.ResourceV1().ResourceClaims(e.namespace).Delete(e.ctx, "first", metav1.DeleteOptions{}))
	used("share.deviceclass.resource.k8s.io/devices", "0")
	e.apply(claimOf(template("second", "{deviceClassName: share}")))
}

// overQuota: a claim is refused, and told how much of what there is.
func (e *env) overQuota(name, body string, words ...string) {
	e.Helper()
	err := e.Apply(e.ctx, e.namespace, claimOf(template(name, body)))
	if !apierrors.IsForbidden(err) || !contains(err.Error(), append(words, "exceeded quota: devices")) {
		e.Errorf("claim %s: error %v, want that the quota forbids it with %q", name, err, words)
	}
}

// TestAdminAccessOfClaims: a claim that stands for itself has no admin access either
// without the namespace's label, whatever class it names.
func TestAdminAccessOfClaims(t *testing.T) {
	e := start(t, nil)
	for _, class := range []string{"monitor.dovetail.dev", "gpu.dovetail.dev", "mps.dovetail.dev"} {
		err := e.Apply(e.ctx, e.namespace, claimOf(template("look", "{deviceClassName: "+class+", adminAccess: true}")))
		if err == nil || !strings.Contains(err.Error(), "resource.kubernetes.io/admin-access: true") {
			t.Errorf("%s: error %v, want one that names the label", class, err)
		}
	}
}
