package claim_test

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/claim/claimtest"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func TestBadInputLeavesNothing(t *testing.T) {
	const head = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig"`
	for name, test := range map[string]struct {
		claim func(w *world) *resourceapi.ResourceClaim
		class error
		words []string
	}{
		"unknown field": {func(w *world) *resourceapi.ResourceClaim {
			return w.allocate("a", head+`,"mode":"x"}`, "gpu-1b-00")
		}, failure.Invalid, []string{"the claim's spec.devices.config", `unknown field "mode"`}},
		"out of range, in the class": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.Allocation.Devices.Config = []resourceapi.DeviceAllocationConfiguration{
				claimtest.Config(resourceapi.AllocationConfigSourceClass, head+`,"computeMode":"Fast"}`, "gpu"),
			}
			return c
		}, failure.Invalid, []string{"DeviceClass", `requests ["gpu"]`, "computeMode", `"Fast"`, "ExclusiveProcess"}},
		"another node's pool": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.Allocation.Devices.Results[0].Pool = "node-2"
			return c
		}, failure.Invalid, []string{"results[0].pool", `"node-2"`, `"node-1"`, "delete the Pod"}},
		"no memory, of which the scheduler has made the least": {func(w *world) *resourceapi.ResourceClaim {
			return w.requesting("r", "r", "memory=0")
		}, failure.Invalid, []string{"request r: capacity.requests[memory]: 0 is too little: the nearest that works is 1Mi"}},
		"no clients, in an alternative": {func(w *world) *resourceapi.ResourceClaim {
			return w.requesting("r/second", "r", "clients=0")
		}, failure.Invalid, []string{"request r/second: capacity.requests[clients]: 0 is too little: the nearest that works is 1"}},
		"no such device": {func(w *world) *resourceapi.ResourceClaim {
			return w.allocate("a", "", "gpu-1b-00", "gpu-99-00")
		}, failure.Absent, []string{"gpu-99-00", "delete the claim"}},
		"not allocated": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.Allocation = nil
			return c
		}, failure.Conflict, []string{"no longer allocated"}},
		"not reserved": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.ReservedFor = nil
			return c
		}, failure.Conflict, []string{"reserved"}},
		"nothing of ours": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.Allocation.Devices.Results[0].Driver = "gpu.example.com"
			return c
		}, failure.Invalid, []string{"none is of driver dovetail.dev"}},
		"a UID that is a path": {func(w *world) *resourceapi.ResourceClaim {
			c := w.allocate("a", "", "gpu-1b-00")
			c.UID = "../../etc/cdi/x"
			return c
		}, failure.Invalid, []string{"metadata.uid"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.refused(test.claim(w), test.class, test.words...)
			w.check()
		})
	}
}

// requesting has a share, of the least that there is, for a request, or the second
// alternative of one, that asks for something else.
func (w *world) requesting(result, request, capacity string) *resourceapi.ResourceClaim {
	w.t.Helper()
	c := w.share("a", "", claimtest.Share{Request: result, Device: "mps-1b-00", ID: "1", Memory: "1Mi"})
	name, amount, _ := strings.Cut(capacity, "=")
	requested := &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
		resourceapi.QualifiedName(name): resource.MustParse(amount),
	}}
	r := resourceapi.DeviceRequest{Name: request}
	if result == request {
		r.Exactly = &resourceapi.ExactDeviceRequest{Capacity: requested}
	} else {
		r.FirstAvailable = []resourceapi.DeviceSubRequest{{Name: "first"}, {Name: "second", Capacity: requested}}
	}
	c.Spec.Devices.Requests = []resourceapi.DeviceRequest{r}
	w.must(w.Store(c))
	return c
}

func TestConfigurationsAreMergedInOrder(t *testing.T) {
	const (
		defaultMode = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","computeMode":"Default"}`
		nothing     = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig"}`
	)
	class, own := resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim
	for name, test := range map[string]struct {
		configs []resourceapi.DeviceAllocationConfiguration
		want    machine.ComputeMode
	}{
		"class alone":                   {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(class, claimtest.Exclusive)}, machine.ComputeModeExclusiveProcess},
		"claim after class":             {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, defaultMode), claimtest.Config(class, claimtest.Exclusive)}, machine.ComputeModeDefault},
		"a field that is left out":      {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(class, claimtest.Exclusive), claimtest.Config(own, nothing)}, machine.ComputeModeExclusiveProcess},
		"the later of two":              {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, claimtest.Exclusive), claimtest.Config(own, defaultMode)}, machine.ComputeModeDefault},
		"for another request":           {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, claimtest.Exclusive, "other")}, machine.ComputeModeDefault},
		"for the request of which this": {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, claimtest.Exclusive, "gpu")}, machine.ComputeModeExclusiveProcess},
		"for this alternative":          {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, claimtest.Exclusive, "gpu/big")}, machine.ComputeModeExclusiveProcess},
		"for another alternative":       {[]resourceapi.DeviceAllocationConfiguration{claimtest.Config(own, claimtest.Exclusive, "gpu/small")}, machine.ComputeModeDefault},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.allocate("a", "", "gpu-1b-00")
			c.Status.Allocation.Devices.Results[0].Request = "gpu/big"
			c.Status.Allocation.Devices.Config = test.configs
			w.prepare(c)
			now, err := w.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := now.GPUs[0].ComputeMode; got != test.want {
				t.Errorf("compute mode %s, want %s", got, test.want)
			}
		})
	}
}
