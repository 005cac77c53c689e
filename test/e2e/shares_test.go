package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// share is the body of a request for a share by MPS; compute is in percent.
func share(memory string, compute int) string {
	return fmt.Sprintf("{deviceClassName: mps.dovetail.dev, capacity: {requests: {memory: %s, compute: %q}}}", memory, fmt.Sprint(compute))
}

// shareOf is share of the GPU with that UUID.
func shareOf(uuid, memory string, compute int) string {
	return strings.TrimSuffix(share(memory, compute), "}") + `, selectors: [{cel: {expression: 'device.attributes["dovetail.dev"].uuid == "` + uuid + `"'}}]}`
}

// TestShare: one share is what it was asked to be, in a Pod that can tell of its
// devices and in one that uses them, and is gone with its Pod.
func TestShare(t *testing.T) {
	e := alone(t)
	gpu := e.gpu(node1, 0)
	e.apply(claimOf(template("share", shareOf(gpu.Spec.UUID, "10Gi", 25))))
	e.pod("look", fromClaim("share"))
	e.attribute(e.verify("look")[0], "type", "mps")
	e.pod("infer", fromClaim("share"), uses("9G", "2G"))
	got := e.limited("infer")[0]
	if d := got.MPS.Devices; len(d) != 1 || d[0].UUID != gpu.Spec.UUID || d[0].Limit != 10<<30 || got.MPS.Percentage != 25 {
		t.Errorf("the program sees %+v", got.MPS)
	}
	e.enforced("infer", machine.EnforcementBestEffort)
	agree(t)
}

// shareTests are claims for shares, each beside the others.
var shareTests = []claimTest{
	{"one for each container", twoShares("share", "1Gi", "2Gi"), func(e *env) {
		e.pod("pair", containers("main", "second"), fromTemplate("share"), only("main", "a", "share"), only("second", "b", "share"), uses("1000M", "1100M"))
		got := e.limited("pair")
		if a, b := got[0].Devices[0], got[1].Devices[0]; a.Limit != 1<<30 || b.Limit != 2<<30 || got[0].MPS.Percentage != 10 || got[1].MPS.Percentage != 20 {
			e.Errorf("the containers see %+v and %+v", got[0].MPS, got[1].MPS)
		}
	}},
}

func TestShares(t *testing.T) { sideBySide(t, shareTests) }

// twoShares is a template of two requests: a with 10 percent, b with 20.
func twoShares(name, a, b string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec:
  spec:
    devices:
      requests:
      - name: a
        exactly: %s
      - name: b
        exactly: %s
`, name, share(a, 10), share(b, 20))
}

// nonRoot runs the Pod as somebody else.
func nonRoot(p *corev1.Pod) {
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532), RunAsNonRoot: ptr.To(true)}
}

// enforced waits until the status of a Pod's claim says how well its memory is kept.
func (e *env) enforced(pod string, want machine.Enforcement) {
	e.Helper()
	name := e.claimOfPod(pod).Name
	claims := harness.Set{Client: e.Kube.ResourceV1().RESTClient(), Resource: "resourceclaims", Namespace: e.namespace}
	var has []resourceapi.AllocatedDeviceStatus
	_, err := harness.WaitOne(e.ctx, claims, name, "how claim "+name+" is enforced", func(c *resourceapi.ResourceClaim) (bool, error) {
		if c == nil {
			return false, nil
		}
		has = c.Status.Devices
		for _, d := range has {
			condition := meta.FindStatusCondition(d.Conditions, "MemoryEnforced")
			if condition == nil || condition.Reason != string(want) || (condition.Status == "True") != (want == machine.EnforcementStrict) {
				return false, nil
			}
		}
		return len(has) > 0, nil
	})
	if err != nil {
		e.Fatalf("want %s: %v; the status says %+v", want, err, has)
	}
}
