package e2e

import (
	"bufio"
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestPartitionHeld: a monitor has a partition open when its Pod is deleted. People
// are told who it is, and the Pod goes as soon as the monitor has let go.
func TestPartitionHeld(t *testing.T) {
	e := alone(t)
	e.apply(partition("one", profile("1g.10gb", e.gpu(node1, 0).Spec.UUID)))
	e.pod("infer", fromTemplate("one"))
	e.verify("infer")
	claim := e.claimOfPod("infer").Name
	letGo := e.hold(node1, "0", "--instance", strconv.Itoa(e.gpu(node1, 0).Instances[0].ID))

	e.must(e.Kube.CoreV1().Pods(e.namespace).Delete(e.ctx, "infer", metav1.DeleteOptions{}))
	_, err := e.WaitEvent(e.ctx, e.namespace, "ResourceClaim", claim, harness.Event("ReleaseWaits", "mig-1b-00-1g10gb-", "is held by dovetail-sim (process ", "/bin/dovetail-sim)"))
	e.must(err)
	e.partitioned(node1, 0, true, 1)
	letGo()
	freed := time.Now()
	e.must(e.WaitGone(e.ctx, e.namespace, "infer"))
	t.Logf("the Pod went %v after the partition was free", time.Since(freed))
	e.partitioned(node1, 0, false, 0)
}

// hold has dovetail-sim hold something open on a node's machine until letGo.
func (e *env) hold(node string, what ...string) (letGo func()) {
	e.Helper()
	argv := append(append([]string{"exec", node}, e.SimCommand("hold")...), what...)
	cmd := e.Command(context.WithoutCancel(e.ctx), argv...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	e.must(err)
	e.must(cmd.Start())
	ended := false
	letGo = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait() // ends by the signal
		}
	}
	e.Cleanup(letGo)
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "held" {
		e.Fatalf("dovetail-sim hold %s on %s: %s", strings.Join(what, " "), node, lines.Text())
	}
	return letGo
}

// TestComputeInstanceFails: the GPU instance is made, but its compute instance is
// not. Nothing of it stays; the Pod starts with the kubelet's next try.
func TestComputeInstanceFails(t *testing.T) {
	e := alone(t)
	e.apply(partition("one", profile("2g.20gb", e.gpu(node1, 0).Spec.UUID)))
	e.failing(node1, "0", simulator.CallMakeComputeInstance, 100)
	e.pod("never", fromTemplate("one"))
	e.prepareFailed("never", "mig-1b-00-2g20gb-", "compute-instance")
	e.gone("never")
	e.partitioned(node1, 0, false, 0)

	e.failing(node1, "0", simulator.CallMakeComputeInstance, 1)
	e.pod("infer", fromTemplate("one"))
	e.prepareFailed("infer", "mig-1b-00-2g20gb-", "compute-instance")
	e.verify("infer")
}

// failing has the next NVML calls of a name fail on a GPU, until the test is over.
func (e *env) failing(node, gpu, call string, times int) {
	e.Helper()
	fail := func(times int) {
		e.Helper()
		e.sim(node, "fail", gpu, call, "--times", strconv.Itoa(times))
	}
	fail(times)
	e.afterwards(func() { fail(0) })
}

// TestPlacementTaken: between the scheduler's choice and the Pod's start, an
// administrator takes the place of the partition. The Pod says who has it, and what
// is published follows.
func TestPlacementTaken(t *testing.T) {
	e := alone(t)
	const device, made = "mig-1b-00-1g10gb-0", "mig-1b-00-2g20gb-0"
	e.allocateByHand(template("one", migRequest), "one", resourceapi.DeviceRequestAllocationResult{Pool: node1, Device: device})
	// What the agent has seen of the GPU stays old for a while.
	e.sim(node1, "slow", "0", "nvmlDeviceGetName", "3s")
	e.sim(node1, "mig", "on", "0")
	e.sim(node1, "mig", "make", "0", "2g.20gb", "--start", "0")
	e.afterwards(func() {
		e.sim(node1, "mig", "destroy", "0", strconv.Itoa(e.gpu(node1, 0).Instances[0].ID))
		e.sim(node1, "mig", "off", "0")
		_, err := e.WaitGPUs(e.ctx, node1, machines[node1].gpus)
		e.must(err)
	})
	e.pod("infer", fromClaim("one"), bound(node1))
	e.prepareFailed("infer", device, "memory units 0 to 1 are taken by GPU instance", "(2g.20gb)", "made by hand")
	e.sim(node1, "slow", "0", "nvmlDeviceGetName", "0")
	slices, err := e.WaitSlices(e.ctx, node1, "the partition that is there, and not those that it overlaps", func(s []*resourceapi.ResourceSlice) bool {
		devices := harness.Devices(s)
		static := devices[made].Attributes["static"].BoolValue
		_, there := devices[device]
		return !there && static != nil && *static
	})
	e.must(err)
	if len(harness.GPUs(slices)) != machines[node1].gpus-1 {
		e.Errorf("%d whole GPUs are published, want %d", len(harness.GPUs(slices)), machines[node1].gpus-1)
	}
	e.gone("infer")
}

// sim does something to a node's machine.
func (e *env) sim(node string, args ...string) {
	e.Helper()
	_, err := e.Sim(e.ctx, node, args...)
	e.must(err)
}

// TestPartitionedGPULost: the GPU falls off the bus while a Pod has a partition of it.
// Its partitions and shares are tainted like the GPU, and the Pod can go.
func TestPartitionedGPULost(t *testing.T) {
	e := alone(t)
	gpu := e.gpu(node1, 1)
	e.apply(partition("one", profile("1g.10gb", gpu.Spec.UUID)))
	e.pod("infer", fromTemplate("one"))
	part := e.verify("infer")[0]
	check := e.undisturbed("infer")

	e.sim(node1, "lose", "1")
	e.afterwards(func() { e.sim(node1, "restore", "1") })
	sick := func(d resourceapi.Device) bool {
		for _, taint := range d.Taints {
			if taint.Key == "dovetail.dev/unhealthy" {
				return true
			}
		}
		return false
	}
	slices, err := e.WaitSlices(e.ctx, node1, "a taint on "+part.Name, func(s []*resourceapi.ResourceSlice) bool {
		return sick(harness.Devices(s)[part.Name])
	})
	e.must(err)
	for name, device := range harness.Devices(slices) {
		owner := ptr.Deref(device.Attributes["uuid"].StringValue, "") // NICs have none
		switch *device.Attributes["type"].StringValue {
		case "monitor": // for a look at sick GPUs, too
			owner = ""
		case "mig":
			owner = parent(device)
		}
		if ofGPU := owner == gpu.Spec.UUID; sick(device) != ofGPU {
			e.Errorf("%s: tainted %t, want %t", name, sick(device), ofGPU)
		}
	}
	check()
	e.gone("infer")
	e.sim(node1, "restore", "1")
	_, err = e.WaitSlices(e.ctx, node1, "no taint", func(s []*resourceapi.ResourceSlice) bool {
		return !sick(harness.Devices(s)[part.Name])
	})
	e.must(err)
	e.pod("next", fromTemplate("one"))
	e.verify("next")
}
