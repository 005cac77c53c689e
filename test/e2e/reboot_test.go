package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestReboot: after a node's reboot the boot id is another, /run is empty and the
// GPUs have forgotten their settings and partitions; the Pod runs again, with its GPU
// as it asked for it, and with its partition made again.
func TestReboot(t *testing.T) {
	e := alone(t)
	e.apply(changing(e.gpu(node1, 0).Spec.UUID, e.gpu(node1, 1).Spec.UUID))
	e.pod("train", fromTemplate("both"))
	e.changed("train", node1)
	before := e.ready("train").Status.ContainerStatuses[0].ContainerID
	claim := e.claimOfPod("train")
	boot := bootID(e.recorded(node1, string(claim.UID)))

	e.reboot(node1)
	_, err := e.WaitPod(e.ctx, e.namespace, "train", "run again after the reboot", func(p *corev1.Pod) bool {
		return harness.Ready(p) && p.Status.ContainerStatuses[0].ContainerID != before
	})
	e.must(err)
	e.changed("train", node1)
	state, err := e.Machine(e.ctx, node1)
	e.must(err)
	if now := bootID(e.recorded(node1, string(claim.UID))); now == boot || now != state.BootID {
		e.Errorf("the record has boot id %q, want the new one %q", now, state.BootID)
	}
	s, err := e.Snapshot(e.ctx, node1)
	e.must(err)
	if !s.Specs()[string(claim.UID)] {
		e.Error("no CDI specification after the reboot")
	}
}

// TestRebootWithShares: control daemons, limits and intervals are made again for the
// Pods that run again.
func TestRebootWithShares(t *testing.T) {
	e := sharing(t)
	e.apply(configuredShare("turn", timeSlice("1Gi"), "sharing: {timeSlicing: {interval: Short}}"))
	e.pod("turn", on(node1), fromTemplate("turn"))
	e.verify("turn")
	before := identities(e.ready("turn"))
	agree(t)
	e.reboot(node1)
	e.restarted("first")
	e.restarted("second")
	_, err := e.WaitPod(e.ctx, e.namespace, "turn", "run again after the reboot", func(p *corev1.Pod) bool {
		return harness.Ready(p) && !slices.Equal(identities(p), before)
	})
	e.must(err)
	e.timeSlice(node1, 1, machine.TimeSliceShort)
	e.next("next")
}

// TestRebootWithOtherCards: a node that was off comes back as another machine. What it has
// now is published; a Pod whose GPU is no longer there can be deleted, and the next one
// gets a GPU that is.
func TestRebootWithOtherCards(t *testing.T) {
	e := alone(t)
	e.apply(template("one", "{deviceClassName: gpu.dovetail.dev}"))
	e.pod("holder", on(node2), fromTemplate("one"))
	e.verify("holder")
	e.becomes(node2, "mixed-rails")
	e.afterwards(func() { e.becomes(node2, machines[node2].description) })
	e.must(e.DeletePod(e.ctx, e.namespace, "holder"))
	e.pod("next", on(node2), fromTemplate("one"))
	e.verify("next")
	e.must(e.DeletePod(e.ctx, e.namespace, "next"))
}

// becomes has a node reboot as another machine, and waits until all of that, and nothing
// of what it was, is published.
func (e *env) becomes(node, description string) {
	e.Helper()
	e.must(e.ExchangeMachine(e.ctx, node, description))
	gpus, _, err := e.WaitMachine(e.ctx, node)
	e.must(err)
	state, err := e.Machine(e.ctx, node)
	e.must(err)
	if gpus != len(state.GPUs) {
		e.Errorf("%s publishes %d GPUs of %s, want %d", node, gpus, description, len(state.GPUs))
	}
}

// reboot reboots a node and its machine.
func (e *env) reboot(node string) {
	e.Helper()
	_, err := e.Cluster.Run(e.ctx, append([]string{"reboot", node, "--wait", "--"}, e.RebootCommand()...)...)
	e.must(err)
}
