package e2e

import (
	"strconv"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestAmpere: these GPUs need a reset to switch MIG mode, so the agent never switches
// it, and offers partitions of those that an administrator has switched.
func TestAmpere(t *testing.T) {
	e := alone(t)
	e.otherMachine(node2, "a30")
	devices, err := e.WaitGPUs(e.ctx, node2, 2)
	e.must(err)
	gpu := e.gpu(node2, 0)
	if _, whole := devices[deviceName(gpu)]; !whole || len(e.partitionsOf(node2, gpu.Spec.UUID)) > 0 {
		t.Errorf("with MIG mode off, published are %v and partitions %v", devices, e.partitionsOf(node2, gpu.Spec.UUID))
	}

	e.sim(node2, "mig", "on", "0")
	e.sim(node2, "reset", "0")
	_, err = e.WaitGPUs(e.ctx, node2, 1)
	e.must(err)
	e.apply(partition("one", profile("1g.6gb", gpu.Spec.UUID)))
	e.pod("infer", fromTemplate("one"))
	e.count(e.verify("infer"), 1)
	e.partitioned(node2, 0, true, 1)
	e.gone("infer")
	e.partitioned(node2, 0, true, 0)

	e.sim(node2, "mig", "off", "0")
	e.sim(node2, "reset", "0")
	_, err = e.WaitGPUs(e.ctx, node2, 2)
	e.must(err)
}

// TestStaticPartitions: partitions that an administrator made are given out as they
// are, also by MPS, and stay. Those that come and go while the agent runs are published at once.
func TestStaticPartitions(t *testing.T) {
	e := alone(t)
	e.otherMachine(node2, "static-mig")
	_, err := e.WaitGPUs(e.ctx, node2, 1)
	e.must(err)
	agent, err := e.Agent(e.ctx, node2)
	e.must(err)
	e.apply(partition("one", `device.attributes["dovetail.dev"].static && `+profile("3g.40gb", "")))
	e.pod("infer", on(node2), fromTemplate("one"))
	part := e.verify("infer")[0]
	e.partitioned(node2, 0, true, 2)
	e.gone("infer")
	e.partitioned(node2, 0, true, 2)
	e.apply(configuredShare("by-mps", selected(migRequest, `device.attributes["dovetail.dev"].static && `+profile("3g.40gb", "")),
		"sharing: {strategy: MPS, mps: {memoryLimit: 2Gi}}"))
	e.pod("shares", on(node2), fromTemplate("by-mps"), fills("1G", "1100M"))
	if got := e.limited("shares")[0].MPS.Devices[0]; got.UUID != *part.Attributes["uuid"].StringValue || got.Limit != 2<<30 {
		t.Errorf("the program sees %+v", got)
	}
	e.gone("shares")

	const made = "mig-43-00-1g10gb-3" // on GPU 1, which is in MIG mode without partitions
	e.sim(node2, "mig", "make", "1", "1g.10gb", "--start", "3")
	there := e.gpu(node2, 1).Instances[0]
	e.static(node2, made, true)
	e.apply(partition("made", hasUUID(there.ComputeInstances[0].UUID)))
	e.pod("first", fromTemplate("made"))
	e.verify("first")
	e.pod("beside", on(node2), fromTemplate("one"))
	e.attribute(e.verify("beside")[0], "uuid", *part.Attributes["uuid"].StringValue)
	e.gone("first")
	if len(e.gpu(node2, 1).Instances) != 1 {
		t.Error("a partition that somebody else made was destroyed with its Pod")
	}
	e.sim(node2, "mig", "destroy", "1", strconv.Itoa(there.ID))
	e.static(node2, made, false)
	e.partitioned(node2, 1, true, 0)
	now, err := e.Agent(e.ctx, node2)
	e.must(err)
	if now.UID != agent.UID {
		t.Error("the agent was restarted")
	}
}

// static waits until a device is published as a partition that exists, or as one that
// can be made.
func (e *env) static(node, device string, want bool) {
	e.Helper()
	_, err := e.WaitSlices(e.ctx, node, device, func(s []*resourceapi.ResourceSlice) bool {
		static := harness.Devices(s)[device].Attributes["static"].BoolValue
		return static != nil && *static == want
	})
	e.must(err)
}

// partitionsOf are the names of the partitions that are published of a GPU.
func (e *env) partitionsOf(node, gpu string) []string {
	e.Helper()
	slices, err := e.WaitSlices(e.ctx, node, "a whole pool", func([]*resourceapi.ResourceSlice) bool { return true })
	e.must(err)
	var names []string
	for name, d := range harness.Devices(slices) {
		if *d.Attributes["type"].StringValue == "mig" && parent(d) == gpu {
			names = append(names, name)
		}
	}
	return names
}
