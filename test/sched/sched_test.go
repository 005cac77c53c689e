package sched

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

const node = "node-1"

// h100 is a scheduler with one node, a DGX H100.
func h100(t *testing.T) *Scheduler {
	t.Helper()
	s := New()
	s.Publish(node, catalog.Build(simulatortest.Describe(t, "dgx-h100"), catalog.Options{}))
	return s
}

// gets allocates a claim and compares its devices; none means that it must not fit.
func (s *Scheduler) gets(t *testing.T, claim *resourceapi.ResourceClaim, want ...string) *resourceapi.ResourceClaim {
	t.Helper()
	where, err := s.Allocate(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	if got := Devices(claim); !slices.Equal(got, want) || (where == node) != (len(want) > 0) {
		t.Errorf("claim %s got %q on %q, want %q", claim.Name, got, where, want)
	}
	return claim
}

func mig(name, profile string) resourceapi.DeviceRequest {
	return Request(name, machine.KindMIG, Profile(profile))
}

func TestOnePartition(t *testing.T) {
	s := h100(t)
	first := s.gets(t, Claim("first", mig("p", "1g.10gb")), "mig-1b-00-1g10gb-0")
	s.gets(t, Claim("second", mig("p", "1g.10gb")), "mig-1b-00-1g10gb-1")
	s.gets(t, Claim("unknown", mig("p", "1g.11gb")))
	s.Release(first)
	if got := s.Allocated(node); !slices.Equal(got, []string{"mig-1b-00-1g10gb-1"}) {
		t.Errorf("allocated: %q", got)
	}
	s.gets(t, Claim("third", mig("p", "1g.10gb")), "mig-1b-00-1g10gb-0")
}

func TestSevenPartitionsFillOneGPU(t *testing.T) {
	s := h100(t)
	var requests []resourceapi.DeviceRequest
	var want []string
	for i := range 7 {
		requests = append(requests, mig(fmt.Sprintf("p%d", i), "1g.10gb"))
		want = append(want, fmt.Sprintf("mig-1b-00-1g10gb-%d", i))
	}
	s.gets(t, Claim("seven", requests...), want...)
	s.gets(t, Claim("eighth", mig("p", "1g.10gb")), "mig-43-00-1g10gb-0")
}

func TestThreeAndFourFitInEitherOrder(t *testing.T) {
	three, four := "mig-1b-00-3g40gb-4", "mig-1b-00-4g40gb-0"
	s := h100(t)
	s.gets(t, Claim("three", mig("p", "3g.40gb")), three)
	s.gets(t, Claim("four", mig("p", "4g.40gb")), four)
	s = h100(t)
	s.gets(t, Claim("four", mig("p", "4g.40gb")), four)
	s.gets(t, Claim("three", mig("p", "3g.40gb")), three)
	s = h100(t)
	s.gets(t, Claim("both", mig("a", "3g.40gb"), mig("b", "4g.40gb")), three, four)
}

func TestSmallestWithEnoughMemory(t *testing.T) {
	s := h100(t)
	s.gets(t, Claim("c15", Request("p", machine.KindMIG, AtLeast("15Gi"))), "mig-1b-00-1g20gb-0")
	s.gets(t, Claim("c20", Request("p", machine.KindMIG, AtLeast("20Gi"))), "mig-1b-00-3g40gb-4")
	s.gets(t, Claim("c80", Request("p", machine.KindMIG, AtLeast("80Gi"))))
}

func TestSameAndDifferentGPUs(t *testing.T) {
	s := h100(t)
	// Six of the first GPU's seven slices are out, so two have to move on together.
	for i := range 6 {
		s.gets(t, Claim(fmt.Sprint("c", i), mig("p", "1g.10gb")), fmt.Sprintf("mig-1b-00-1g10gb-%d", i))
	}
	two := func(name string) *resourceapi.ResourceClaim {
		return Claim(name, mig("a", "1g.10gb"), mig("b", "1g.10gb"))
	}
	s.gets(t, Match(two("same"), "parentUUID"), "mig-43-00-1g10gb-0", "mig-43-00-1g10gb-1")
	s.gets(t, Distinct(two("different"), "parentUUID"), "mig-1b-00-1g10gb-6", "mig-43-00-1g10gb-2")
}

func TestWholeGPUsAndPartitionsExclude(t *testing.T) {
	s := h100(t)
	partition := s.gets(t, Claim("partition", mig("p", "1g.10gb")), "mig-1b-00-1g10gb-0")
	whole := Request("g", machine.KindGPU)
	s.gets(t, Claim("beside", whole), "gpu-43-00")
	all := whole
	all.Exactly = whole.Exactly.DeepCopy()
	all.Exactly.Count = 7
	s.gets(t, Claim("seven", all)) // one of eight is out, one is cut
	all.Exactly.Count = 6
	six := Claim("six", all)
	if _, err := s.Allocate(t.Context(), six); err != nil || len(Devices(six)) != 6 {
		t.Fatalf("%v, %q", err, Devices(six))
	}
	waiting := s.gets(t, Claim("waiting", whole))
	s.gets(t, Claim("small", mig("p", "3g.40gb")), "mig-1b-00-3g40gb-4") // beside the 1g
	s.Release(six)
	s.gets(t, waiting, "gpu-52-00")
	s.Release(waiting)
	s.Release(partition)
	one := Request("g", machine.KindGPU, `device.attributes["resource.kubernetes.io"].pciBusID == "0000:1b:00.0"`)
	s.gets(t, Claim("first GPU", one)) // the 3g is still out
}

func TestWholeGPUFitsAfterThePartition(t *testing.T) {
	s := h100(t)
	one := Request("g", machine.KindGPU, `device.attributes["resource.kubernetes.io"].pciBusID == "0000:1b:00.0"`)
	partition := s.gets(t, Claim("partition", mig("p", "2g.20gb")), "mig-1b-00-2g20gb-0")
	waiting := s.gets(t, Claim("waiting", one))
	s.Release(partition)
	s.gets(t, waiting, "gpu-1b-00")
	s.gets(t, Claim("partition again", mig("p", "2g.20gb")), "mig-43-00-2g20gb-0")
}

func TestMonitorsTakeNothing(t *testing.T) {
	s := h100(t)
	look := Request("m", machine.KindMonitor)
	look.Exactly.AllocationMode, look.Exactly.Count = resourceapi.DeviceAllocationModeAll, 0
	look.Exactly.AdminAccess = new(bool)
	*look.Exactly.AdminAccess = true
	look.Exactly.Tolerations = []resourceapi.DeviceToleration{{Key: catalog.TaintMonitor, Operator: resourceapi.DeviceTolerationOpExists}}
	claim := Claim("look", look)
	if where, err := s.Allocate(t.Context(), claim); err != nil || where != node || len(Devices(claim)) != 8 {
		t.Errorf("%q, %v: %q", where, err, Devices(claim))
	}
	if got := s.Allocated(node); len(got) > 0 {
		t.Errorf("allocated: %q", got)
	}
}

func TestSickGPUIsPassedOver(t *testing.T) {
	m := simulatortest.Describe(t, "dgx-h100")
	m.GPUs[0].Health = machine.Health{Reason: machine.FaultXid, Message: "sick"}
	s := New()
	s.Publish(node, catalog.Build(m, catalog.Options{}))
	s.gets(t, Claim("partition", mig("p", "1g.10gb")), "mig-43-00-1g10gb-0")
}

func TestNextNode(t *testing.T) {
	s := h100(t)
	s.Publish("node-2", catalog.Build(simulatortest.Describe(t, "t4"), catalog.Options{}))
	all := Request("g", machine.KindGPU)
	all.Exactly.Count = 8
	s.gets(t, Claim("all", all), "gpu-1b-00", "gpu-43-00", "gpu-52-00", "gpu-61-00", "gpu-9d-00", "gpu-c3-00", "gpu-d1-00", "gpu-df-00")
	claim := Claim("one", Request("g", machine.KindGPU))
	if where, err := s.Allocate(t.Context(), claim); err != nil || where != "node-2" {
		t.Errorf("%q, %v", where, err)
	}
	if _, err := s.Allocate(t.Context(), claim); err == nil {
		t.Error("a claim was allocated twice")
	}
}

// The selectors are those of the chart.
func TestClasses(t *testing.T) {
	chart, err := os.ReadFile("../chart/testdata/shares.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := New()
	s.Offer(machine.Size{Name: "small", Kind: machine.KindMPS})
	s.Offer(machine.Size{Name: "turn", Kind: machine.KindTimeSlice})
	for _, class := range s.classes {
		for _, line := range []string{"  name: " + class.Name, "        expression: " + class.Spec.Selectors[0].CEL.Expression} {
			if !strings.Contains(string(chart), line+"\n") {
				t.Errorf("the chart has no line %q", line)
			}
		}
	}
}
