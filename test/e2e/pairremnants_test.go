package e2e

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestPairsDeclaredUnderAPair: the administrator declares other pairs than those that the
// machine tells while a Pod has one of these. What is left of it outlives kubelets, agents
// and a damaged record, and goes with the claim, also where Pod and claim are deleted by
// force, and the agent is killed while it releases the claim.
func TestPairsDeclaredUnderAPair(t *testing.T) {
	e := alone(t)
	gpu, own, far := e.gpu(node1, 2), e.nic(node1, 2), e.nic(node1, 6)
	e.apply(claimOf(choosing("held", "pair.dovetail.dev", hasUUID(gpu.Spec.UUID))))
	e.pod("train", on(node1), fromClaim("held"))
	pair := e.verify("train")[0]
	if bus := *pair.Attributes["nicPciBusID"].StringValue; bus != own.Spec.Address.String() {
		t.Fatalf("the pair is with NIC %s, want %s", bus, own.Spec.Address)
	}
	check := e.undisturbed("train")
	uid := string(e.claimOfPod("train").UID)

	with := harness.Values{"network": []map[string]any{{
		"nodes": []string{node1},
		"pairs": []map[string]string{{"gpu": gpu.Spec.Address.String(), "nic": far.Spec.Address.String()}},
	}}}
	for name, value := range values {
		with[name] = value
	}
	e.must(e.Install(e.ctx, with))
	home := func() {
		e.must(e.Install(e.ctx, values))
		e.rolledOut()
	}
	e.afterwards(home)
	e.rolledOut()
	isRemnant := func(d resourceapi.Device, there bool) bool {
		return there && taintedWith(d, "dovetail.dev/leaving") && len(d.ConsumesCounters) == 2
	}
	e.waits(node1, pair.Name, "for its claim alone", isRemnant)
	e.apply(choosing("gpu", "gpu.dovetail.dev", hasUUID(gpu.Spec.UUID)))
	e.apply(byFunction("nic.dovetail.dev", own))
	for pod, from := range map[string]string{"wants-gpu": "gpu", "wants-nic": "one"} {
		e.pod(pod, on(node1), fromTemplate(from))
		e.event(pod, "FailedScheduling", "cannot allocate all claims")
	}

	t.Logf("devices were gone for %v", e.restartKubelet(node1))
	e.waits(node1, pair.Name, "for its claim alone, with a new kubelet", isRemnant)
	e.agentOff(node1)
	e.agentBack(node1)
	_, err := e.Shell(e.ctx, node1, "truncate -s 40 "+harness.ClaimsDir+"/"+uid+".json")
	e.must(err)
	e.agentOn(node1)
	e.nodeEvent(node1, "JournalDamaged", uid, "rebuilt from the claim's CDI specification")
	e.waits(node1, pair.Name, "for its claim alone, with a record rebuilt", isRemnant)
	check()

	killed := e.arm(node1, failpoint.CDIRemoved)
	e.waits(node1, pair.Name, "for its claim alone, with a new agent", isRemnant)
	e.forceDelete("train", "held")
	killed()
	e.verify("wants-gpu")
	e.verify("wants-nic")
	e.waits(node1, pair.Name, "no more", func(_ resourceapi.Device, there bool) bool { return !there })
	e.gone("wants-gpu")
	e.gone("wants-nic")
	home()
	e.waits(node1, pair.Name, "as before", func(d resourceapi.Device, there bool) bool {
		return there && len(d.Taints) == 0
	})
}
