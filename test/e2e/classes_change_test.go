package e2e

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// TestClassChanged: a class that is changed while a Pod has a share of it is new for Pods to
// come, and for that Pod what it was.
func TestClassChanged(t *testing.T) {
	e := withClasses(t)
	e.class("changed", "{shape: {mps: {memory: 10Gi, compute: 25}}, hardware: {products: ['NVIDIA L4']}, extendedResourceName: example.com/gpu-changed}")
	e.counts("changed", 1, 2, 0, 4)
	e.pod("before", limits("example.com/gpu-changed", 1), fills("9G", "2G"))
	e.limited("before")
	check := e.undisturbed("before")

	e.must(e.PatchClass(e.ctx, "changed", `{"spec":{"shape":{"mps":{"memory":"5Gi","compute":10}}}}`))
	e.shareOf(node2, "changed", 5<<30)
	e.pod("after", limits("example.com/gpu-changed", 1), fills("4G", "2G"))
	if got := e.limited("after")[0].MPS; got.Devices[0].Limit != 5<<30 || got.Percentage != 10 {
		t.Errorf("after the change a program sees %+v", got)
	}
	check()
	if got := e.runs("before", "--allocate", "500M"); got.Error != "" || got.MPS.Devices[0].Limit != 10<<30 {
		t.Errorf("after the change a program in the Pod of before sees %+v", got)
	}
	e.untilClass("changed", "count both", func(c *v1alpha1.PartitionClass) bool { return c.Status.Allocated == 2 })
	agree(t)

	// Partitions: the one that a Pod has stays, and no other is offered.
	e.class("parts", "{shape: {mig: {profile: 1g.10gb}}, extendedResourceName: example.com/gpu-parts}")
	e.offers(node1, "1g.10gb")
	e.pod("first", limits("example.com/gpu-parts", 1))
	e.verify("first")
	check = e.undisturbed("before", "after", "first")
	e.must(e.PatchClass(e.ctx, "parts", `{"spec":{"shape":{"mig":{"profile":"2g.20gb"}}}}`))
	e.offers(node1, "2g.20gb")
	e.pod("second", limits("example.com/gpu-parts", 1))
	e.attribute(e.verify("second")[0], "profile", "2g.20gb")
	e.attribute(e.verify("first")[0], "profile", "1g.10gb")
	check()
	e.gone("first")
	e.gone("second")
}

// shareOf waits until a node offers shares of a class in that size, in bytes.
func (e *env) shareOf(node, class string, size int64) {
	e.Helper()
	_, err := e.WaitSlices(e.ctx, node, "shares of the new size", func(s []*resourceapi.ResourceSlice) bool {
		devices := harness.Devices(s)
		found := false
		for _, name := range offered(devices) {
			d := devices[name]
			if ptr.Deref(d.Attributes["partitionClass"].StringValue, "") != class {
				continue
			}
			policy := d.Capacity["memory"].RequestPolicy
			if policy == nil || policy.Default.Value() != size {
				return false
			}
			found = true
		}
		return found
	})
	e.must(err)
}

// TestClassDeleted: a class that is deleted while it is used stays until the last claim has
// gone, and so does all that it needs.
func TestClassDeleted(t *testing.T) {
	e := withClasses(t)
	e.class("going", "{shape: {mig: {profile: 1g.10gb}}, extendedResourceName: example.com/gpu-going}")
	e.offers(node1, "1g.10gb")
	e.pod("first", limits("example.com/gpu-going", 1))
	e.verify("first")
	e.counts("going", 1, 8*7, 1, 8*7-1)
	check := e.undisturbed("first")

	e.must(e.DeleteClass(e.ctx, "going"))
	e.untilClass("going", "say what it waits for", func(c *v1alpha1.PartitionClass) bool {
		return has(c, v1alpha1.ConditionDeleting, metav1.ConditionTrue, "InUse", "it goes with the last of them") && ready(c)
	})
	e.offers(node1, "1g.10gb")
	e.pod("second", limits("example.com/gpu-going", 1))
	e.verify("second")

	e.must(e.PatchClass(e.ctx, "going", `{"spec":{"published":false}}`))
	e.untilClass("going", "be retired", func(c *v1alpha1.PartitionClass) bool {
		return has(c, v1alpha1.ConditionMatched, metav1.ConditionFalse, "NotPublished") && c.Status.Allocated == 2
	})
	e.pod("third", limits("example.com/gpu-going", 1))
	e.event("third", "FailedScheduling")
	check()
	e.verify("first")
	agree(t)

	e.gone("third")
	e.gone("second")
	e.untilClass("going", "wait for the last claim", func(c *v1alpha1.PartitionClass) bool { return c.Status.Allocated == 1 })
	e.verify("first")
	e.gone("first")
	e.classGone("going")
}
