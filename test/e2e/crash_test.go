package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestAgentKilled kills the agent at edges between journal, hardware and CDI,
// while it prepares a claim and while it releases one. (test/crash walks through
// all of them, without a cluster.)
func TestAgentKilled(t *testing.T) {
	for _, place := range []string{failpoint.StepDone, failpoint.CDIWritten} {
		t.Run(place, func(t *testing.T) {
			e := alone(t)
			e.apply(exclusive("one", e.gpu(node1, 0).Spec.UUID))
			killed := e.arm(node1, place)
			e.pod("train", fromTemplate("one"))
			killed()
			e.count(e.verify("train"), 1)
			e.computeMode(node1, 0, machine.ComputeModeExclusiveProcess)
			e.gone("train")
			e.computeMode(node1, 0, machine.ComputeModeDefault)
		})
	}
	for _, place := range []string{failpoint.CDIRemoved, failpoint.JournalRemoved} {
		t.Run(place, func(t *testing.T) {
			e := alone(t)
			e.apply(exclusive("one", e.gpu(node1, 0).Spec.UUID))
			e.pod("train", fromTemplate("one"))
			e.count(e.verify("train"), 1)
			killed := e.arm(node1, place)
			e.gone("train")
			killed()
			e.computeMode(node1, 0, machine.ComputeModeDefault)
		})
	}
}

// arm has the agent on a node killed when it passes a place. killed waits until it
// was, and runs again. It is a new agent, so that the kubelet does not wait with
// its restart.
func (e *env) arm(node, place string) (killed func()) {
	e.Helper()
	agent, err := e.RestartAgent(e.ctx, node)
	e.must(err)
	e.must(e.WriteFile(e.ctx, node, failpointFile, place))
	return func() {
		e.Helper()
		_, err := e.WaitPod(e.ctx, harness.Namespace, agent.Name, "be killed at "+place+" and ready again", func(p *corev1.Pod) bool {
			return p.Status.ContainerStatuses[0].RestartCount == 1 && harness.Ready(p)
		})
		e.must(err)
		left, err := e.Shell(e.ctx, node, "cat "+failpointFile+" 2>/dev/null || true")
		e.must(err)
		if strings.TrimSpace(left) != "" {
			e.Errorf("the agent ended, but not at %s", place)
		}
	}
}
