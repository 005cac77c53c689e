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

// reboot reboots a node and its machine.
func (e *env) reboot(node string) {
	e.Helper()
	_, err := e.Cluster.Run(e.ctx, append([]string{"reboot", node, "--wait", "--"}, e.RebootCommand()...)...)
	e.must(err)
}
