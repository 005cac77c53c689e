package e2e

import (
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// adminAccess asks for a look at all GPUs of a node.
const adminAccess = `{deviceClassName: gpu.dovetail.dev, allocationMode: All, adminAccess: true}`

// TestAdminAccess: an administrator's Pod sees the GPUs that a tenant holds, and
// changes nothing of them: neither by coming nor by going.
func TestAdminAccess(t *testing.T) {
	tenant := alone(t)
	uuid := tenant.gpu(node2, 0).Spec.UUID
	tenant.apply(exclusive("one", uuid))
	tenant.pod("tenant", fromTemplate("one"))
	tenant.count(tenant.verify("tenant"), 1)
	check := tenant.undisturbed("tenant")

	admin := start(t, map[string]string{"resource.kubernetes.io/admin-access": "true"})
	// The administrator's claim asks for a change that it must not make.
	admin.apply(strings.Replace(configured("all", "", "{apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig, computeMode: ExclusiveProcess}"),
		"          selectors:\n          - cel: {expression: \"true\"}\n", "          allocationMode: All\n          adminAccess: true\n", 1))
	admin.pod("monitor", on(node2), fromTemplate("all"))
	admin.count(admin.verify("monitor"), machines[node2].gpus)
	tenant.computeMode(node2, 0, machine.ComputeModeExclusiveProcess)
	tenant.computeMode(node2, 1, machine.ComputeModeDefault)

	admin.gone("monitor")
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
