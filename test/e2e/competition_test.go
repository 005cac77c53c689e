package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestFourGPUs: shares by MPS, time slices, partitions and whole GPUs compete for four
// GPUs, all at once. Each way has a GPU, and a second whole one comes free with the
// last time slice.
func TestFourGPUs(t *testing.T) {
	e := alone(t)
	e.apply(template("others", fmt.Sprintf("{deviceClassName: gpu.dovetail.dev, count: %d}", machines[node1].gpus-4)))
	e.pod("others", on(node1), fromTemplate("others"))
	e.count(e.verify("others"), machines[node1].gpus-4)

	e.apply(template("whole", gpuRequest))
	e.apply(partition("part", profile("2g.20gb", "")))
	e.apply(template("share", share("20Gi", 25)))
	e.apply(template("turn", timeSlice("20Gi")))
	for i := range 2 {
		e.pod(fmt.Sprintf("turn-%d", i), on(node1), fromTemplate("turn"))
		e.pod(fmt.Sprintf("part-%d", i), on(node1), fromTemplate("part"))
		e.pod(fmt.Sprintf("share-%d", i), on(node1), fromTemplate("share"), fills("20G", "1M"))
		if i == 0 {
			e.pod("whole", on(node1), fromTemplate("whole"))
		}
	}
	ways := map[string]string{}
	for _, pod := range []string{"whole", "turn-0", "turn-1", "part-0", "part-1"} {
		ways[e.place(e.verify(pod)[0].Name)] += pod + " "
	}
	for _, pod := range []string{"share-0", "share-1"} {
		e.limited(pod)
		ways[e.place(e.claimOfPod(pod).Status.Allocation.Devices.Results[0].Device)] += pod + " "
	}
	for gpu, pods := range ways {
		if pods != "whole " && pods != "turn-0 turn-1 " && pods != "part-0 part-1 " && pods != "share-0 share-1 " {
			t.Errorf("GPU %s is used by %s", gpu, pods)
		}
	}
	agree(t)

	e.pod("second", on(node1), fromTemplate("whole"))
	e.event("second", "FailedScheduling", "cannot allocate all claims")
	free := e.place(e.verify("turn-0")[0].Name)
	e.gone("turn-0")
	e.gone("turn-1")
	if got := e.verify("second")[0].Name; e.place(got) != free {
		t.Errorf("the second whole GPU is %s, want the one that came free: %s", got, free)
	}
}

// place is the address part of a device's name.
func (e *env) place(device string) string {
	e.Helper()
	parts := strings.Split(device, "-")
	if len(parts) < 3 {
		e.Fatalf("device %q has no address", device)
	}
	return parts[1] + "-" + parts[2]
}

// TestSize: a Pod that asks for nothing but an extended resource gets a share of the
// size that the administrator has named, counted by the scheduler and kept to it.
func TestSize(t *testing.T) {
	e := alone(t)
	const perGPU = 4 // of 25 percent each
	for i := range perGPU + 1 {
		e.pod(fmt.Sprintf("pod-%d", i), on(node1), limits(smallShare, 1), fills("9G", "1100M"))
	}
	used := map[string]int{}
	for i := range perGPU + 1 {
		pod := fmt.Sprintf("pod-%d", i)
		got := e.limited(pod)[0].MPS
		if got.Devices[0].Limit != 10<<30 || got.Percentage != 25 {
			t.Errorf("%s sees %+v", pod, got)
		}
		used[got.Devices[0].UUID]++
		claims, err := e.Claims(e.ctx, e.ready(pod))
		e.must(err)
		for _, c := range claims {
			for _, r := range c.Status.Allocation.Devices.Results {
				if memory := r.ConsumedCapacity["memory"]; memory.Value() != 10<<30 {
					t.Errorf("%s consumes %v of %s", pod, r.ConsumedCapacity, r.Device)
				}
			}
		}
	}
	if used[e.gpu(node1, 0).Spec.UUID] != perGPU || used[e.gpu(node1, 1).Spec.UUID] != 1 {
		t.Errorf("shares by GPU: %v, want %d on the first and 1 on the second", used, perGPU)
	}
	agree(t)
}

// TestShareBySelector: what a node gives can be selected on. No node of this cluster
// keeps shares strictly, so the claim waits.
func TestShareBySelector(t *testing.T) {
	e := start(t, nil)
	e.apply(template("strict", selected(share("1Gi", 5), `device.attributes["dovetail.dev"].memoryEnforcement == "Strict"`)))
	e.pod("infer", fromTemplate("strict"))
	e.event("infer", "FailedScheduling", "cannot allocate all claims")
}
