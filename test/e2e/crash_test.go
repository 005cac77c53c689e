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
	// The second step makes the partition's GPU instance.
	for _, place := range []string{failpoint.StepDone + " 2", failpoint.CDIWritten} {
		t.Run(place, func(t *testing.T) {
			e := alone(t)
			e.apply(changing(e.gpu(node1, 0).Spec.UUID, e.gpu(node1, 1).Spec.UUID))
			killed := e.arm(node1, place)
			e.pod("train", fromTemplate("both"))
			killed()
			e.changed("train", node1)
			e.gone("train")
			e.unchanged(node1)
		})
	}
	// The second step to be undone leaves that without a compute instance.
	for _, place := range []string{failpoint.CDIRemoved, failpoint.StepUndone + " 2", failpoint.JournalRemoved} {
		t.Run(place, func(t *testing.T) {
			e := alone(t)
			e.apply(changing(e.gpu(node1, 0).Spec.UUID, e.gpu(node1, 1).Spec.UUID))
			e.pod("train", fromTemplate("both"))
			e.changed("train", node1)
			killed := e.arm(node1, place)
			e.gone("train")
			killed()
			e.unchanged(node1)
		})
	}
}

// changing is a template "both" of a partition of one GPU and of another GPU for one
// process alone, so that preparing it changes hardware in each of the ways there are.
func changing(partitioned, exclusive string) string {
	return claiming("both",
		request{"part", selected(migRequest, profile("2g.20gb", partitioned))},
		request{"whole", selected(gpuRequest, hasUUID(exclusive))}) +
		configuring(config("GPUConfig", "computeMode: ExclusiveProcess"), "whole")
}

// changed: a Pod with a claim of that template, for GPUs 0 and 1 of the node, has
// what it should.
func (e *env) changed(pod, node string) {
	e.Helper()
	e.count(e.verify(pod), 2)
	e.partitioned(node, 0, true, 1)
	e.computeMode(node, 1, machine.ComputeModeExclusiveProcess)
	agree(e.T)
}

// unchanged: the GPUs are as they were.
func (e *env) unchanged(node string) {
	e.Helper()
	e.partitioned(node, 0, false, 0)
	e.computeMode(node, 1, machine.ComputeModeDefault)
}

// arm has the agent on a node killed when it passes a place, as pkg/failpoint reads
// it. killed waits until it was, and runs again. It is a new agent, so that the
// kubelet does not wait with its restart.
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
