package e2e

import (
	"maps"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestDriverComesLate: the agent starts before the NVIDIA driver is loaded. It
// says so with an empty pool, and publishes the GPUs as soon as they are there.
func TestDriverComesLate(t *testing.T) {
	e := alone(t)
	e.agentBack(node2)
	e.agentOff(node2)
	_, err := e.Sim(e.ctx, node2, "driver", "unload")
	e.must(err)
	e.afterwards(func() {
		_, err := e.Sim(e.ctx, node2, "driver", "load")
		e.must(err)
	})
	agent := e.agentOn(node2)
	_, err = e.WaitGPUs(e.ctx, node2, 0)
	e.must(err)

	_, err = e.Sim(e.ctx, node2, "driver", "load")
	e.must(err)
	_, err = e.WaitGPUs(e.ctx, node2, machines[node2].gpus)
	e.must(err)
	now, err := e.WaitAgent(e.ctx, node2)
	e.must(err)
	if now.UID != agent.UID || now.Status.ContainerStatuses[0].RestartCount != 0 {
		e.Errorf("the agent was restarted: %v, then %v", identities(agent), identities(now))
	}
	e.apply(template("one", gpuRequest))
	e.pod("train", on(node2), fromTemplate("one"))
	e.verify("train")
}

// TestBrokenMachine: of five GPUs one does not say how much memory it has, one
// fell off the bus, and one must be reset. Those that work are offered, the others
// are told of.
func TestBrokenMachine(t *testing.T) {
	e := alone(t)
	e.otherMachine(node2, "broken")
	devices, err := e.WaitGPUs(e.ctx, node2, 3)
	e.must(err)
	want := []string{"gpu-1b-00", "gpu-43-00", "gpu-9d-00"}
	if got := slices.Sorted(maps.Keys(devices)); !slices.Equal(got, want) {
		e.Errorf("published are %v, want %v", got, want)
	}
	for _, fault := range []struct{ device, reason, words string }{
		{"0000:43:00.0", "memory-unknown", "does not say how much memory"},
		{"0000:52:00.0", "lost", "reboot"}, // sysfs tells its address: NVML no longer does
		{"0000:61:00.0", "reset-required", "reset"},
	} {
		e.nodeEvent(node2, "DeviceFault", fault.device, fault.words)
		e.metric(node2, `dovetail_device_fault{device="`+fault.device+`",reason="`+fault.reason+`"}`, "1")
	}
	e.apply(selecting(`device.attributes["dovetail.dev"].productName.startsWith("NVIDIA H100") && device.capacity["dovetail.dev"].memory.isGreaterThan(quantity("1Gi"))`))
	e.pod("train", on(node2), fromTemplate("one"))
	e.verify("train")
}

// otherMachine makes another machine of a node until the test is over.
func (e *env) otherMachine(node, description string) {
	e.Helper()
	e.agentBack(node)
	e.swapMachine(node, description)
	e.afterwards(func() {
		e.swapMachine(node, machines[node].description)
		_, err := e.WaitGPUs(e.ctx, node, machines[node].gpus)
		e.must(err)
	})
}

// swapMachine makes another machine of a node.
func (e *env) swapMachine(node, description string) {
	e.Helper()
	e.agentOff(node)
	e.must(e.CreateMachine(e.ctx, node, description))
	e.agentOn(node)
}

// TestGPULost: a GPU falls off the bus while a Pod holds it. It alone is tainted,
// for as long as that lasts.
func TestGPULost(t *testing.T) {
	e := alone(t)
	gpu := e.gpu(node1, 1)
	name := deviceName(gpu)
	e.apply(byUUID(gpu.Spec.UUID))
	e.apply(template("other", gpuRequest))
	e.pod("holder", fromTemplate("one"))
	e.verify("holder")
	check := e.undisturbed("holder")

	_, err := e.Sim(e.ctx, node1, "lose", "1")
	e.must(err)
	e.afterwards(func() {
		_, err := e.Sim(e.ctx, node1, "restore", "1")
		e.must(err)
	})
	slices_, err := e.WaitSlices(e.ctx, node1, "a taint on "+name, func(s []*resourceapi.ResourceSlice) bool {
		return len(harness.Devices(s)[name].Taints) > 0
	})
	e.must(err)
	devices := harness.GPUs(slices_)
	e.count(slices.Collect(maps.Values(devices)), machines[node1].gpus)
	for other, device := range devices {
		if other != name && len(device.Taints) > 0 {
			e.Errorf("%s is tainted, too: %v", other, device.Taints)
		}
	}
	if taint := devices[name].Taints[0]; taint.Key != "dovetail.dev/unhealthy" || taint.Effect != resourceapi.DeviceTaintEffectNoSchedule {
		e.Errorf("%s has taint %v", name, taint)
	}
	e.nodeEvent(node1, "DeviceFault", gpu.Spec.Address.String())
	e.pod("other", on(node1), fromTemplate("other"))
	e.verify("other")

	_, err = e.Sim(e.ctx, node1, "restore", "1")
	e.must(err)
	_, err = e.WaitSlices(e.ctx, node1, "no taint", func(s []*resourceapi.ResourceSlice) bool {
		return len(harness.Devices(s)[name].Taints) == 0
	})
	e.must(err)
	check()
	e.nodeEvent(node1, "DeviceRecovered", gpu.Spec.Address.String())
}
