package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestFilesWiped: somebody removes the CDI specifications, or the journal, of a Pod
// that runs. The Pod's container can start again, and its GPU is given back as it
// was.
func TestFilesWiped(t *testing.T) {
	for name, files := range map[string]string{
		"CDI specifications": "/var/run/cdi/dovetail.dev*",
		"the journal":        harness.ClaimsDir,
	} {
		t.Run(name, func(t *testing.T) {
			e := alone(t)
			e.agentBack(node1)
			e.apply(exclusive("one", e.gpu(node1, 0).Spec.UUID))
			e.pod("train", on(node1), fromTemplate("one"))
			e.count(e.verify("train"), 1)
			before := e.ready("train").Status.ContainerStatuses[0].ContainerID

			_, err := e.Shell(e.ctx, node1, "rm -rf "+files)
			e.must(err)
			e.agentOff(node1)
			e.agentOn(node1)
			_, err = e.Shell(e.ctx, node1, "pkill -9 podcheck")
			e.must(err)
			_, err = e.WaitPod(e.ctx, e.namespace, "train", "run again", func(p *corev1.Pod) bool {
				return harness.Ready(p) && p.Status.ContainerStatuses[0].ContainerID != before
			})
			e.must(err)
			e.count(e.verify("train"), 1)
			e.computeMode(node1, 0, machine.ComputeModeExclusiveProcess)
			e.gone("train")
			e.computeMode(node1, 0, machine.ComputeModeDefault)
		})
	}
}
