package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestNICsAreKept: containers end and start again, the kubelet and the agent go and come,
// and the NIC stays where it is; when the Pod has gone, it is at home.
func TestNICsAreKept(t *testing.T) {
	t.Run("container restarts", func(t *testing.T) {
		e := alone(t)
		e.apply(template("one", pairsOf(1)))
		e.pod("train", on(node1), containers("main", "second"), fromTemplate("one"))
		e.verify("train")
		e.restartContainers("train")
		e.verify("train")
		agree(t)
	})
	t.Run("agent upgraded", func(t *testing.T) {
		e := alone(t)
		nic := e.nic(node1, 0)
		e.apply(byFunction("nic.dovetail.dev", nic))
		e.apply(template("other", nicRequest))
		e.pod("train", fromTemplate("one"))
		before := e.verify("train")[0]
		check := e.undisturbed("train")
		e.replaceAgents()
		e.pod("meanwhile", on(node1), fromTemplate("other"))
		e.verify("meanwhile")
		e.rolledOut()
		check()
		e.attribute(e.verify("train")[0], "ifName", *before.Attributes["ifName"].StringValue)
		agree(t)
	})
	t.Run("reboot", func(t *testing.T) {
		e := alone(t)
		e.apply(configuredPair("one", pairsOf(1), "gpu: {computeMode: ExclusiveProcess}, nic: {interfaceName: rail0}"))
		e.pod("train", on(node1), fromTemplate("one"))
		e.verify("train")
		before := identities(e.ready("train"))
		e.reboot(node1)
		_, err := e.WaitPod(e.ctx, e.namespace, "train", "run again after the reboot", func(p *corev1.Pod) bool {
			return harness.Ready(p) && !slices.Equal(identities(p), before)
		})
		e.must(err)
		e.verify("train")
		agree(t)
	})
	t.Run("Pod goes without agent", func(t *testing.T) {
		e := alone(t)
		e.agentBack(node1)
		nic := e.nic(node1, 2)
		e.apply(byFunction("nic.dovetail.dev", nic))
		e.apply(claimOf(configuredNIC("held", selected(nicRequest, fmt.Sprintf(`device.attributes["resource.kubernetes.io"].pciBusID == "%s"`, nic.Spec.Address)),
			"interfaceName: rail0, mtu: 4200")))
		e.pod("train", fromClaim("held"))
		e.verify("train")
		e.agentOff(node1)
		e.forceDelete("train", "held")
		e.agentOn(node1)
		e.pod("next", fromTemplate("one"))
		e.verify("next")
		agree(t)
	})
}

// restartContainers ends a Pod's containers and waits until they run again.
func (e *env) restartContainers(name string) {
	e.Helper()
	pod := e.ready(name)
	before := identities(pod)
	_, err := e.Shell(e.ctx, pod.Spec.NodeName, `for p in $(pgrep -x podcheck); do
		if grep -q `+string(pod.UID)+` /proc/$p/cgroup; then kill $p; fi
	done`)
	e.must(err)
	_, err = e.WaitPod(e.ctx, e.namespace, name, "run again", func(p *corev1.Pod) bool {
		now := identities(p)
		return harness.Ready(p) && !slices.ContainsFunc(now, func(id string) bool { return slices.Contains(before, id) })
	})
	e.must(err)
}

// TestAgentKilledWithNIC kills the agent between journal and container runtime, while it
// prepares a claim with a NIC and while it releases one.
func TestAgentKilledWithNIC(t *testing.T) {
	configured := configuredPair("one", pairsOf(1), "gpu: {computeMode: ExclusiveProcess}, nic: {interfaceName: rail0}")
	t.Run("preparing", func(t *testing.T) {
		e := alone(t)
		e.apply(configured)
		killed := e.arm(node1, failpoint.StepDone+" 2")
		e.pod("train", on(node1), fromTemplate("one"))
		killed()
		e.verify("train")
		agree(t)
	})
	t.Run("releasing", func(t *testing.T) {
		e := alone(t)
		e.apply(configured)
		e.pod("train", on(node1), fromTemplate("one"))
		e.verify("train")
		killed := e.arm(node1, failpoint.StepUndone)
		e.gone("train")
		killed()
	})
}
