package e2e

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestPairOfLostGPU: the GPU of a pair is lost while no agent runs, and the next one knows
// nothing of it. The pair's NIC stays its Pod's, and is free when that has gone.
func TestPairOfLostGPU(t *testing.T) {
	e := alone(t)
	gpu := e.gpu(node1, 3)
	e.apply(template("one", selected("{deviceClassName: pair.dovetail.dev}", fmt.Sprintf(`device.attributes["dovetail.dev"].uuid == %q`, gpu.Spec.UUID))))
	e.pod("train", on(node1), fromTemplate("one"))
	pair := e.verify("train")[0]
	check := e.undisturbed("train")

	e.agentOff(node1)
	e.agentBack(node1)
	e.sim(node1, "lose", "3")
	e.afterwards(func() { e.sim(node1, "restore", "3") })
	e.agentOn(node1)
	e.waits(node1, pair.Name, "without its GPU", func(d resourceapi.Device, there bool) bool {
		return there && taintedWith(d, "dovetail.dev/leaving") && taintedWith(d, "dovetail.dev/unhealthy")
	})
	e.apply(template("nic", selected("{deviceClassName: nic.dovetail.dev}",
		fmt.Sprintf(`device.attributes["resource.kubernetes.io"].pciBusID == %q`, *pair.Attributes["nicPciBusID"].StringValue))))
	e.pod("other", on(node1), fromTemplate("nic"))
	e.event("other", "FailedScheduling", "cannot allocate all claims")
	check()
	agree(t)

	e.gone("train")
	e.verify("other")
	e.waits(node1, pair.Name, "no more", func(_ resourceapi.Device, there bool) bool { return !there })
	e.sim(node1, "restore", "3")
	e.waits(node1, pair.Name, "as before", func(d resourceapi.Device, there bool) bool { return there && len(d.Taints) == 0 })
}

// waits until a device of a node is published in some way, or is not.
func (e *env) waits(node, device, what string, is func(d resourceapi.Device, there bool) bool) {
	e.Helper()
	_, err := e.WaitSlices(e.ctx, node, device+" "+what, func(s []*resourceapi.ResourceSlice) bool {
		d, there := harness.Devices(s)[device]
		return is(d, there)
	})
	e.must(err)
}
