package e2e

import (
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// looking asks for a look at all GPUs of a node, and for a change that it must not
// make.
var looking = claiming("all", request{"all",
	"{deviceClassName: monitor.dovetail.dev, allocationMode: All, adminAccess: true, tolerations: [{key: dovetail.dev/monitor, operator: Exists}]}"}) +
	configuring(config("GPUConfig", "computeMode: ExclusiveProcess"))

// TestAdminAccess: an administrator's Pod sees the GPUs that tenants have, and
// changes nothing of them: neither by coming nor by going.
func TestAdminAccess(t *testing.T) {
	tenant := alone(t)
	gpu := tenant.gpu(node2, 0)
	tenant.apply(exclusive("one", gpu.Spec.UUID))
	tenant.pod("tenant", fromTemplate("one"))
	tenant.count(tenant.verify("tenant"), 1)
	check := tenant.undisturbed("tenant")

	admin := start(t, map[string]string{"resource.kubernetes.io/admin-access": "true"})
	admin.apply(looking)
	admin.pod("monitor", on(node2), fromTemplate("all"))
	admin.count(admin.verify("monitor"), machines[node2].gpus)
	tenant.computeMode(node2, 0, machine.ComputeModeExclusiveProcess)
	tenant.computeMode(node2, 1, machine.ComputeModeDefault)

	// A tenant comes while the administrator looks.
	tenant.apply(configured("other", tenant.gpu(node2, 1).Spec.UUID, "{apiVersion: dovetail.dev/v1alpha1, kind: GPUConfig}"))
	tenant.pod("second", fromTemplate("other"))
	tenant.count(tenant.verify("second"), 1)

	admin.gone("monitor")
	tenant.computeMode(node2, 0, machine.ComputeModeExclusiveProcess)
	check()
	tenant.verify("tenant")
	tenant.verify("second")
}

// TestLookWithoutAdminAccess: a monitor is not a way past the counters.
func TestLookWithoutAdminAccess(t *testing.T) {
	e := alone(t)
	e.apply(template("look", "{deviceClassName: monitor.dovetail.dev, tolerations: [{key: dovetail.dev/monitor, operator: Exists}]}"))
	e.pod("train", on(node2), fromTemplate("look"))
	e.prepareFailed("train", "set adminAccess to true, or claim gpu.dovetail.dev")
	e.untouched(node2, e.claimOfPod("train"))
}

// TestAdminAccessRefused: without the namespace's label there is none.
func TestAdminAccessRefused(t *testing.T) {
	e := start(t, nil)
	objects, err := harness.Objects(looking)
	e.must(err)
	err = e.Create(e.ctx, e.namespace, objects[0])
	if err == nil || !strings.Contains(err.Error(), "resource.kubernetes.io/admin-access: true") {
		t.Errorf("a template with admin access in an unlabelled namespace: error %v, want one that names the label", err)
	}
}
