package sched

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

const gib = 1 << 30

// sized is h100 with sizes of shares.
func sized(t *testing.T, sharing machine.Sharing) *Scheduler {
	t.Helper()
	m := simulatortest.Describe(t, "dgx-h100")
	m.Sharing = sharing
	s := New()
	s.Publish(node, catalog.Build(m, catalog.Options{}))
	for _, size := range sharing.Sizes {
		s.Offer(size)
	}
	return s
}

// consumed is what a claim has of a capacity of its first device, in the unit of the
// capacity.
func consumed(claim *resourceapi.ResourceClaim, capacity resourceapi.QualifiedName) int64 {
	quantity := claim.Status.Allocation.Devices.Results[0].ConsumedCapacity[capacity]
	return quantity.Value()
}

func mps(capacity ...string) resourceapi.DeviceRequest {
	return Share("s", machine.KindMPS, capacity...)
}

// Ten Pods of 10Gi and a quarter of the multiprocessors: four to a GPU.
func TestSharesAddUp(t *testing.T) {
	s := h100(t)
	gpus := []string{"mps-1b-00", "mps-43-00", "mps-52-00"}
	shares := map[string]bool{}
	var first *resourceapi.ResourceClaim
	for i := range 10 {
		claim := s.gets(t, Claim(fmt.Sprint("c", i), mps("memory=10Gi", "compute=25")), gpus[i/4])
		result := claim.Status.Allocation.Devices.Results[0]
		if result.ShareID == nil || shares[string(*result.ShareID)] {
			t.Errorf("share of claim %d: %v", i, result.ShareID)
		} else {
			shares[string(*result.ShareID)] = true
		}
		if consumed(claim, "memory") != 10*gib || consumed(claim, "compute") != 25 || consumed(claim, "clients") != 1 {
			t.Errorf("claim %d: %v", i, result.ConsumedCapacity)
		}
		if first == nil {
			first = claim
		}
	}
	if got := s.Allocated(node); !slices.Equal(got, gpus) {
		t.Errorf("allocated: %q", got)
	}
	// One that reserves no multiprocessors still fits, until memory is out.
	s.gets(t, Claim("memory", mps("memory=39Gi")), "mps-1b-00")
	s.gets(t, Claim("too much", mps("memory=1Gi")), "mps-43-00")
	s.Release(first)
	s.gets(t, Claim("instead", mps("memory=10Gi", "compute=25")), "mps-1b-00")
}

// What a claim does not ask for it gets of everything an equal part, so that nothing
// but clients runs out.
func TestAsManySharesAsClients(t *testing.T) {
	for kind, clients := range map[machine.Kind]int{machine.KindMPS: 48, machine.KindTimeSlice: 16} {
		s := h100(t)
		device := string(kind)
		for i := range clients {
			s.gets(t, Claim(fmt.Sprint("c", i), Request("s", kind)), device+"-1b-00")
		}
		s.gets(t, Claim("next", Request("s", kind)), device+"-43-00")
	}
	s := h100(t)
	s.gets(t, Claim("half", mps("clients=24")), "mps-1b-00")
	s.gets(t, Claim("more", mps("clients=25")), "mps-43-00")
	s.gets(t, Claim("other half", mps("clients=24")), "mps-1b-00")
}

// A whole GPU, a partition, a share and a time slice of one GPU exclude each other,
// in whatever order they come, and go back with the last share.
func TestModesExclude(t *testing.T) {
	s := sized(t, machine.Sharing{Sizes: []machine.Size{
		{Name: "small", Kind: machine.KindMPS, Memory: 10 * gib, Compute: 25}, {Name: "large", Kind: machine.KindMPS, Memory: 30 * gib},
		{Name: "turn", Kind: machine.KindTimeSlice, Memory: 20 * gib},
	}})
	first := `device.attributes["resource.kubernetes.io"].pciBusID == "0000:1b:00.0"`
	requests := map[string]resourceapi.DeviceRequest{
		"gpu-1b-00":            Request("r", machine.KindGPU, first),
		"mig-1b-00-1g10gb-0":   Request("r", machine.KindMIG, Profile("1g.10gb"), first),
		"mps-1b-00":            Request("r", machine.KindMPS, first),
		"mps-1b-00-small":      RequestOf("r", "small", first),
		"mps-1b-00-large":      RequestOf("r", "large", first),
		"timeslice-1b-00":      Request("r", machine.KindTimeSlice, first),
		"timeslice-1b-00-turn": RequestOf("r", "turn", first),
	}
	modes := slices.Sorted(maps.Keys(requests))
	for _, has := range modes {
		holder := s.gets(t, Claim("holder", requests[has]), has)
		var second *resourceapi.ResourceClaim
		for _, wants := range modes {
			claim := Claim("wants "+wants, requests[wants])
			switch {
			case wants != has || has == "gpu-1b-00":
				s.gets(t, claim)
			case has == "mig-1b-00-1g10gb-0":
			default:
				second = s.gets(t, claim, has)
			}
		}
		s.Release(holder)
		if second != nil { // it still has the GPU
			s.gets(t, Claim("whole", requests["gpu-1b-00"]))
			s.Release(second)
		}
		if left := s.Allocated(node); len(left) > 0 {
			t.Fatalf("after %s: %q", has, left)
		}
	}
}

func TestSharesThatNoGPUHas(t *testing.T) {
	s := h100(t)
	for _, capacity := range []string{"memory=80Gi", "compute=101", "clients=49", "bandwidth=1"} {
		s.gets(t, Claim(capacity, mps(capacity)))
	}
	s.gets(t, Claim("no compute", Share("s", machine.KindTimeSlice, "compute=1")))
	// What is less than the least is the least, and what lies between two steps more.
	claim := s.gets(t, Claim("least", mps("memory=0", "compute=0")), "mps-1b-00")
	if got := consumed(claim, "memory"); got != machine.MinShare {
		t.Errorf("memory: %d", got)
	}
	claim = s.gets(t, Claim("between", mps("memory=1500Ki")), "mps-1b-00")
	if got := consumed(claim, "memory"); got != 2*machine.MinShare {
		t.Errorf("memory: %d", got)
	}
}

// An old Pod spec's extended resource becomes a request of the class that asks for no
// capacity at all.
func TestPlainRequestGetsItsSize(t *testing.T) {
	s := sized(t, machine.Sharing{Sizes: []machine.Size{{Name: "small", Kind: machine.KindMPS, Memory: 10 * gib, Compute: 30}}})
	var last *resourceapi.ResourceClaim
	for i := range 4 {
		device := []string{"mps-1b-00-small", "mps-43-00-small"}[i/3] // three times 30 percent
		last = s.gets(t, Claim(fmt.Sprint("c", i), RequestOf("r", "small")), device)
		if consumed(last, "memory") != 10*gib || consumed(last, "compute") != 30 || consumed(last, "clients") != 1 {
			t.Errorf("claim %d: %v", i, last.Status.Allocation.Devices.Results[0].ConsumedCapacity)
		}
	}
	more := RequestOf("r", "small")
	more.Exactly.Capacity = mps("memory=11Gi").Exactly.Capacity
	s.gets(t, Claim("more than its size", more))
	s.gets(t, Claim("any size", Request("r", machine.KindMPS)), "mps-52-00")
}

// One claim can have several shares: of one GPU, unless it says otherwise.
func TestSeveralSharesInOneClaim(t *testing.T) {
	s := h100(t)
	two := func(name string) *resourceapi.ResourceClaim {
		a, b := mps("memory=10Gi"), mps("memory=20Gi")
		a.Name, b.Name = "a", "b"
		return Claim(name, a, b)
	}
	claim := s.gets(t, two("same"), "mps-1b-00", "mps-1b-00")
	results := claim.Status.Allocation.Devices.Results
	if a, b := results[0].ShareID, results[1].ShareID; a == nil || b == nil || *a == *b {
		t.Errorf("shares %v and %v", a, b)
	}
	s.gets(t, Distinct(two("different"), "uuid"), "mps-1b-00", "mps-43-00")
	s.Release(claim)
	s.gets(t, Claim("large", mps("memory=65Gi")), "mps-1b-00")
}

// A claim that wants limits that hold asks for them.
func TestEnforcementCanBeSelected(t *testing.T) {
	strict := Request("s", machine.KindMPS, `device.attributes["dovetail.dev"].memoryEnforcement == "Strict"`)
	m := simulatortest.Describe(t, "dgx-h100")
	s := New()
	s.Publish("node-0", catalog.Build(m, catalog.Options{}))
	m.GPUs = slices.Clone(m.GPUs)
	m.GPUs[1].LimitsCgroups = true // and no other GPU's
	s.Publish(node, catalog.Build(m, catalog.Options{}))
	s.gets(t, Claim("strict", strict), "mps-43-00")
}

// A GPU that does not say how much memory it has is shared all the same.
func TestMemoryUnknown(t *testing.T) {
	m := simulatortest.Describe(t, "t4")
	m.GPUs = m.GPUs[:1]
	m.GPUs[0].Memory = machine.Memory{}
	s := New()
	s.Publish(node, catalog.Build(m, catalog.Options{}))
	s.gets(t, Claim("some", mps("memory=1Gi")))
	for i := range 48 {
		s.gets(t, Claim(fmt.Sprint("c", i), Request("s", machine.KindMPS)), "mps-3b-00")
	}
	s.gets(t, Claim("next", Request("s", machine.KindMPS)))
}
