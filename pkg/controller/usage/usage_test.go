package usage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// What is free is as many as the scheduler goes on to give, whatever was given before.
func TestFreeIsWhatTheSchedulerGives(t *testing.T) {
	c := newCluster(t, "dgx-h100", "mig-fleet", "mixed")
	names := []string{"one", "three", "whole", "any", "small", "turn", "none"}
	random := rand.New(rand.NewPCG(1, 2))
	var held []*resourceapi.ResourceClaim
	for round := range 12 {
		for range 8 {
			if claim := c.claim(t, names[random.IntN(len(names))]); claim != nil {
				held = append(held, claim)
				if !c.tell(t, claim) {
					t.Error("an allocation changes nothing")
				}
			}
		}
		for range random.IntN(6) {
			i := random.IntN(len(held))
			c.Release(held[i])
			if i%2 == 0 {
				c.tell(t, held[i])
			} else {
				c.DeleteClaim(held[i])
			}
			held = slices.Delete(held, i, i+1)
		}
		for _, name := range names {
			counts := c.count(t, name)
			has := 0
			for _, claim := range held {
				if claim.Spec.Devices.Requests[0].Exactly.DeviceClassName == name {
					has++
				}
			}
			var more []*resourceapi.ResourceClaim
			for {
				claim := c.claim(t, name)
				if claim == nil {
					break
				}
				more = append(more, claim)
			}
			for _, claim := range more {
				c.Release(claim)
			}
			if counts.Free != len(more) || counts.Allocated != has {
				t.Errorf("round %d, class %s: %d free, %d allocated; the scheduler gives %d, and gave %d", round, name, counts.Free, counts.Allocated, len(more), has)
			}
		}
	}
	for _, claim := range held {
		c.DeleteClaim(claim)
	}
	if counts := c.count(t, "whole"); counts.Allocated != 0 || counts.Free != counts.Devices {
		t.Errorf("nothing is held: %+v", counts)
	}
}

// A change is counted only where it is.
func TestChanges(t *testing.T) {
	c := newCluster(t, "dgx-h100", "mixed")
	before := c.count(t, "whole")
	if before.Nodes != 2 || before.Devices == 0 || before.Devices != before.Free {
		t.Fatalf("%+v", before)
	}
	slices := c.Slices("dgx-h100")
	for _, s := range slices {
		c.DeleteSlice(s)
	}
	without := c.count(t, "whole")
	if without.Nodes != 1 || before.Devices-without.Devices != 8 {
		t.Errorf("without a node: %+v", without)
	}
	if _, known := c.pools["dgx-h100"]; known {
		t.Error("the pool is not forgotten")
	}
	for _, s := range slices {
		c.SetSlice(s)
	}
	if again := c.count(t, "whole"); again != before {
		t.Errorf("again: %+v", again)
	}

	// A newer generation replaces an older one, which is deleted later.
	newer := slices[len(slices)-1].DeepCopy()
	newer.Name, newer.Spec.Pool.Generation, newer.Spec.Devices = "newer", 2, nil
	c.SetSlice(newer)
	if now := c.count(t, "whole"); now.Devices != before.Devices || now.Free != without.Free {
		t.Errorf("one slice of a newer generation: %+v", now)
	}
	newer = newer.DeepCopy()
	newer.Spec.Pool.ResourceSliceCount = 1
	c.SetSlice(newer)
	if now := c.count(t, "whole"); now != without {
		t.Errorf("a newer generation without devices: %+v", now)
	}
	other := newer.DeepCopy()
	other.Spec.Driver = "gpu.example.com"
	c.SetSlice(other)
	if now := c.count(t, "whole"); now != without {
		t.Errorf("with another driver's: %+v", now)
	}
}

// While an agent is writing its pool anew, or has stopped doing so, the scheduler gives
// nothing of it.
func TestOfAnIncompletePoolNothingIsFree(t *testing.T) {
	c := newCluster(t, "dgx-h100")
	before := c.count(t, "one")
	all := c.Slices("dgx-h100")
	c.DeleteSlice(all[len(all)-1])
	if now := c.count(t, "one"); now.Free != 0 || now.Devices == 0 || now.Nodes != 1 {
		t.Errorf("without one slice: %+v", now)
	}
	c.SetSlice(all[len(all)-1])
	if now := c.count(t, "one"); now != before {
		t.Errorf("with it again: %+v, before %+v", now, before)
	}
}

// Of an incomplete pool a device is as the newest slice has it, whatever older ones say.
func TestOfAnIncompletePoolTheNewestCounts(t *testing.T) {
	c := newCluster(t, "dgx-h100")
	all := c.Slices("dgx-h100")
	for i, s := range all[:len(all)-1] { // one is still to come
		newer := s.DeepCopy()
		newer.Name, newer.Spec.Pool.Generation = fmt.Sprint("newer-", i), s.Spec.Pool.Generation+1
		for j := range newer.Spec.Devices {
			newer.Spec.Devices[j].Attributes["type"] = resourceapi.DeviceAttribute{StringValue: ptr.To("monitor")}
		}
		c.SetSlice(newer)
	}
	whole := 0 // what the last slice alone has
	for _, d := range all[len(all)-1].Spec.Devices {
		if *d.Attributes["type"].StringValue == "gpu" {
			whole++
		}
	}
	for range 20 { // maps have no order
		c.SetSlice(all[0])
		if now := c.count(t, "whole"); now.Devices != whole {
			t.Fatalf("%+v, want %d", now, whole)
		}
	}
}

func TestTaintedIsNotFree(t *testing.T) {
	c := newCluster(t, "dgx-h100")
	for _, s := range c.Slices("dgx-h100") {
		tainted := s.DeepCopy()
		for i := range tainted.Spec.Devices {
			tainted.Spec.Devices[i].Taints = []resourceapi.DeviceTaint{{Key: "a", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}
		c.SetSlice(tainted)
	}
	for _, name := range []string{"whole", "one", "small"} {
		if counts := c.count(t, name); counts.Free != 0 || counts.Devices == 0 {
			t.Errorf("%s: %+v", name, counts)
		}
	}
}

func TestWhichClassAClaimWentThrough(t *testing.T) {
	yes := true
	claim := &resourceapi.ResourceClaim{}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{
		{Name: "a", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "small"}},
		{Name: "b", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "x", DeviceClassName: "large"}, {Name: "y", DeviceClassName: "small"}}},
	}
	claim.UID = "1"
	result := func(request, device string) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{Request: request, Driver: catalog.DriverName, Pool: "n", Device: device}
	}
	admin, foreign := result("a", "gpu-3"), result("a", "gpu-4")
	admin.AdminAccess, foreign.Driver = &yes, "gpu.example.com"
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
		result("a", "gpu-0"), result("b/y", "gpu-1"), result("b/x", "gpu-2"), admin, foreign,
	}}}
	c := newCluster(t)
	if !c.tell(t, claim) || c.tell(t, claim) {
		t.Error("the first time is a change, the second is none")
	}
	if small, large := c.Store.Allocated("small"), c.Store.Allocated("large"); small != 2 || large != 1 {
		t.Errorf("%d small, %d large", small, large)
	}
	claim.Status.Allocation = nil
	if !c.tell(t, claim) || c.Store.Allocated("small") != 0 || len(c.pools) != 0 {
		t.Errorf("nothing is allocated any more, but %d small, pools %v", c.Store.Allocated("small"), c.pools)
	}
}

func TestSelectorThatFails(t *testing.T) {
	c := newCluster(t, "dgx-h100", "mig-fleet", "mixed", "t4")
	c.Add("odd", c.classes["whole"])
	c.tell(t, c.claim(t, "odd"))
	for expression, want := range map[string]string{
		`device.attributes["dovetail.dev"].colour == "red"`: "no such key",
		`device.`: "selector device.",
	} {
		spec := resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}}
		said := ""
		for range 10 { // statuses have the error, and are not to change by themselves
			counts, err := c.Count(t.Context(), "odd", &spec)
			if err == nil || !strings.Contains(err.Error(), want) || said != "" && err.Error() != said {
				t.Fatalf("%s: error %v, before %s", expression, err, said)
			}
			said = err.Error()
			if counts != (Counts{Allocated: 1}) {
				t.Fatalf("%s: %+v", expression, counts)
			}
		}
	}
}
