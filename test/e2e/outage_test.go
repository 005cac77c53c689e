package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// outage is how long the API server is away: longer than any time-out of the
// agent's calls but those that wait for the kubelet.
const outage = 20 * time.Second

// TestAPIServerAway: the agent outlives it, and so do the Pods.
func TestAPIServerAway(t *testing.T) {
	e := alone(t)
	e.apply(template("one", gpuRequest))
	e.pod("before", on(node1), fromTemplate("one"))
	e.verify("before")
	check := e.undisturbed("before")
	agent, err := e.WaitAgent(e.ctx, node1)
	e.must(err)

	_, err = e.Cluster.Run(e.ctx, "pause-apiserver")
	e.must(err)
	err = harness.Pass(e.ctx, outage)
	_, resumed := e.Cluster.Run(context.Background(), "resume-apiserver")
	e.must(err)
	e.must(resumed)

	e.pod("after", on(node1), fromTemplate("one"))
	e.verify("after")
	check()
	now, err := e.WaitAgent(e.ctx, node1)
	e.must(err)
	if now.UID != agent.UID || now.Status.ContainerStatuses[0].RestartCount != agent.Status.ContainerStatuses[0].RestartCount {
		e.Errorf("the agent was restarted: %v, then %v", identities(agent), identities(now))
	}
}

// TestDiskFull: a claim whose record cannot be written is not prepared. The Pod
// says why it waits, and starts when there is room.
func TestDiskFull(t *testing.T) {
	e := alone(t)
	e.agentBack(node1)
	e.agentOff(node1)
	const filler = harness.ClaimsDir + "/filler"
	_, err := e.Shell(e.ctx, node1, "mount -t tmpfs -o size=64k tmpfs "+harness.ClaimsDir)
	e.must(err)
	e.afterwards(func() {
		e.agentOff(node1)
		_, err := e.Shell(e.ctx, node1, "umount "+harness.ClaimsDir)
		e.must(err)
	})
	e.agentOn(node1)
	_, err = e.Shell(e.ctx, node1, "dd if=/dev/zero of="+filler+" bs=4k 2>/dev/null || true")
	e.must(err)

	e.apply(exclusive("one", e.gpu(node1, 0).Spec.UUID))
	e.pod("train", fromTemplate("one"))
	e.prepareFailed("train", "no space left on device")
	_, err = e.Shell(e.ctx, node1, "rm "+filler)
	e.must(err)
	e.verify("train")
	e.gone("train")
}
