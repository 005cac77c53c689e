package e2e

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// adminAccess asks for a look at all GPUs of a node.
const adminAccess = `{deviceClassName: gpu.dovetail.dev, allocationMode: All, adminAccess: true}`

// TestAdminAccess: an administrator's Pods see the GPUs of tenants and change
// nothing of them: neither by coming nor by going.
func TestAdminAccess(t *testing.T) {
	tenant := alone(t)
	admin := start(t, map[string]string{"resource.kubernetes.io/admin-access": "true"})
	admin.apply(template("all", adminAccess))
	admin.pod("monitor", on(node2), fromTemplate("all"))
	admin.count(admin.verify("monitor"), machines[node2].gpus)

	// Admin access keeps no GPU from tenants.
	gpu := tenant.gpu(node2, 0)
	tenant.apply(exclusive("one", gpu.Spec.UUID))
	tenant.pod("tenant", fromTemplate("one"))
	tenant.count(tenant.verify("tenant"), 1)
	check := tenant.undisturbed("tenant")

	// Kubernetes 1.37 takes counters for what they are not, and gives no admin
	// access to a GPU that is in use: what its scheduler would do is done by hand.
	// The claim asks for a change that it must not make.
	admin.allocateByHand(exclusive("late", ""), "late", resourceapi.DeviceRequestAllocationResult{
		Pool: node2, Device: deviceName(gpu), AdminAccess: ptr.To(true),
	})
	admin.pod("late", fromClaim("late"), bound(node2))
	admin.count(admin.verify("late"), 1)
	for _, name := range []string{"monitor", "late"} {
		tenant.computeMode(node2, 0, machine.ComputeModeExclusiveProcess)
		admin.gone(name)
	}
	tenant.computeMode(node2, 0, machine.ComputeModeExclusiveProcess)
	check()
	tenant.verify("tenant")
}

// TestAdminAccessRefused: without the namespace's label there is none.
func TestAdminAccessRefused(t *testing.T) {
	e := start(t, nil)
	objects, err := harness.Objects(template("all", adminAccess))
	e.must(err)
	err = e.Create(e.ctx, e.namespace, objects[0])
	if err == nil || !strings.Contains(err.Error(), "resource.kubernetes.io/admin-access: true") {
		t.Errorf("a template with admin access in an unlabelled namespace: error %v, want one that names the label", err)
	}
}
