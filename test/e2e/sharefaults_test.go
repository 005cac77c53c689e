package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// sharing is a test with shares of GPU 0 of node 1: two Pods have one, "next" can get
// one, too.
func sharing(t *testing.T) *env {
	t.Helper()
	e := alone(t)
	e.apply(template("share", shareOf(e.gpu(node1, 0).Spec.UUID, "10Gi", 25)))
	for _, pod := range []string{"first", "second"} {
		e.pod(pod, fromTemplate("share"), fills("9G", "2G"))
	}
	e.limited("first")
	e.limited("second")
	return e
}

// next: one more share can be had, and all agrees.
func (e *env) next(pod string) {
	e.Helper()
	e.pod(pod, fromTemplate("share"), fills("9G", "2G"))
	e.limited(pod)
	agree(e.T)
}

// TestSharesWithoutAgent: neither an upgrade of the agent nor its death matters to who
// has a share.
func TestSharesWithoutAgent(t *testing.T) {
	e := sharing(t)
	check, daemon := e.undisturbed("first", "second"), e.controlDaemon(node1)
	e.replaceAgents()
	e.rolledOut()
	e.next("upgraded")

	agent, err := e.WaitAgent(e.ctx, node1)
	e.must(err)
	e.kill(node1, "dovetail-node run")
	e.again(agent)
	e.next("killed")
	check()
	if now := e.controlDaemon(node1); now != daemon {
		t.Errorf("the control daemon is process %d, and was %d", now, daemon)
	}
	if got := e.runs("first", "--allocate", "1M"); got.MPS == nil || got.Error != "" {
		t.Errorf("a new process of the first Pod gets %+v", got)
	}
}

// TestMPSKilled: what serves in dovetail-mps is killed. Control daemon and clients live
// on.
func TestMPSKilled(t *testing.T) {
	e := sharing(t)
	check, daemon := e.undisturbed("first", "second"), e.controlDaemon(node1)
	e.kill(node1, "dovetail-mps serve")
	e.next("next")
	check()
	if now := e.controlDaemon(node1); now != daemon {
		t.Errorf("the control daemon is process %d, and was %d", now, daemon)
	}
	e.kill(node1, "dovetail-mps serve")
	e.gone("first")
	e.gone("second")
	e.gone("next")
	e.computeMode(node1, 0, machine.ComputeModeDefault)
}

// TestControlDaemonKilled: clients lose their work and are told so, people, too, and
// programs that start anew find a new control daemon.
func TestControlDaemonKilled(t *testing.T) {
	e := sharing(t)
	e.pod("told", fromTemplate("share"), once, fills("9G", "2G"))
	e.limited("told")
	daemon := e.controlDaemon(node1)
	e.kill(node1, mps.ControlName+" -f")
	e.nodeEvent(node1, "MPSRestarted", deviceName(e.gpu(node1, 0)), "work of its clients is lost")
	pod, err := e.WaitPod(e.ctx, e.namespace, "told", "end", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	e.must(err)
	if said := pod.Status.ContainerStatuses[0].State.Terminated.Message; !strings.Contains(said, `"ended":true`) || !strings.Contains(said, mps.ErrRPC) {
		t.Errorf("the program that lost its work said %q", said)
	}
	e.restarted("first")
	if now := e.controlDaemon(node1); now == daemon {
		t.Errorf("the control daemon is still process %d", now)
	}
	e.next("next")
}

// TestMPSAway: with the Pod of dovetail-mps go its control daemons. While there are none
// no container starts that would use its GPU without them; its successor starts them
// again.
func TestMPSAway(t *testing.T) {
	e := sharing(t)
	daemon := e.controlDaemon(node1)
	e.agentBack(node1)
	e.agentOff(node1) // dovetail-mps goes, too
	e.event("first", "Failed", harness.MPSDir, "no such file or directory")
	e.agentOn(node1)
	e.nodeEvent(node1, "MPSRestarted", deviceName(e.gpu(node1, 0)))
	e.restarted("first")
	e.restarted("second")
	if now := e.controlDaemon(node1); now == daemon {
		t.Errorf("the control daemon is still process %d", now)
	}
	e.next("next")
}

// TestClientFaults: the fatal fault of one client ends the work of all, and the server
// takes their programs again.
func TestClientFaults(t *testing.T) {
	e := sharing(t)
	if got := e.runs("first", "--fault"); got.MPS == nil { // that it has begun is all that it can say
		t.Errorf("a process that is to fault says %+v", got)
	}
	e.restarted("first")
	e.restarted("second")
	e.next("next")
}

// controlDaemon is the process ID of the one control daemon on a node.
func (e *env) controlDaemon(node string) int {
	e.Helper()
	s, err := e.Snapshot(e.ctx, node)
	e.must(err)
	daemons := slices.DeleteFunc(s.Processes, func(p harness.Process) bool { return !p.Control() })
	if len(daemons) != 1 {
		e.Fatalf("control daemons on %s: %+v, want one", node, daemons)
	}
	return daemons[0].PID
}

// kill kills a node's processes whose command line has that in it.
func (e *env) kill(node, command string) {
	e.Helper()
	_, err := e.Shell(e.ctx, node, `n=0
		for p in $(pgrep -f '^[^ ]*`+command+`'); do
			grep -qs /`+node+`/ /proc/$p/cgroup && kill -9 $p && n=1
		done
		test $n = 1`)
	e.must(err)
}

// again waits until the agent of a Pod runs again.
func (e *env) again(agent *corev1.Pod) {
	e.Helper()
	_, err := e.WaitPod(e.ctx, harness.Namespace, agent.Name, "be ready again", func(p *corev1.Pod) bool {
		return p.Status.ContainerStatuses[0].RestartCount > agent.Status.ContainerStatuses[0].RestartCount && harness.Ready(p)
	})
	e.must(err)
}

// restarted waits until a Pod's program has started anew, and is limited again.
func (e *env) restarted(pod string) {
	e.Helper()
	_, err := e.WaitPod(e.ctx, e.namespace, pod, "start anew", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount > 0 && harness.Ready(p)
	})
	e.must(err)
	e.limited(pod)
}
