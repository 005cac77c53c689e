package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// withClasses starts a test that makes PartitionClasses: when it is over they are gone,
// and nodes publish what they did.
func withClasses(t *testing.T) *env {
	t.Helper()
	e := alone(t)
	before := map[string][]string{}
	for node := range machines {
		before[node] = offered(e.devices(node))
	}
	e.afterwards(func() {
		e.must(e.DeletePods(e.ctx, e.namespace))
		e.must(e.DeleteClasses(e.ctx))
		for node := range machines {
			_, err := e.WaitSlices(e.ctx, node, "what it did without classes", func(s []*resourceapi.ResourceSlice) bool {
				now := offered(harness.Devices(s))
				return !slices.ContainsFunc(before[node], func(name string) bool { return !slices.Contains(now, name) })
			})
			e.must(err)
		}
	})
	return e
}

// devices are those that a node publishes.
func (e *env) devices(node string) map[string]resourceapi.Device {
	e.Helper()
	s, err := e.WaitSlices(e.ctx, node, "a whole pool", func([]*resourceapi.ResourceSlice) bool { return true })
	e.must(err)
	return harness.Devices(s)
}

// offered names the devices that new claims can get.
func offered(devices map[string]resourceapi.Device) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(devices)), func(name string) bool {
		return slices.ContainsFunc(devices[name].Taints, func(t resourceapi.DeviceTaint) bool { return t.Key == "dovetail.dev/leaving" })
	})
}

// class makes a PartitionClass and waits until its DeviceClass is as it says. In a class's
// own words: spec is its spec.
func (e *env) class(name, spec string) {
	e.Helper()
	class := &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.must(yaml.UnmarshalStrict([]byte(spec), &class.Spec))
	e.must(e.CreateClass(e.ctx, class))
	e.untilClass(name, "be ready", ready)
}

// untilClass waits until a class is as it should be.
func (e *env) untilClass(name, what string, done func(*v1alpha1.PartitionClass) bool) *v1alpha1.PartitionClass {
	e.Helper()
	class, err := e.WaitClass(e.ctx, name, what, func(c *v1alpha1.PartitionClass) bool { return c != nil && done(c) })
	e.must(err)
	return class
}

// classGone waits until a class is gone, and with it its DeviceClass.
func (e *env) classGone(name string) {
	e.Helper()
	_, err := e.WaitClass(e.ctx, name, "go", func(c *v1alpha1.PartitionClass) bool { return c == nil })
	e.must(err)
	if _, err := e.Kube.ResourceV1().DeviceClasses().Get(e.ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		e.Errorf("DeviceClass %s of a class that is gone: error %v, want that there is none", name, err)
	}
}

// ready: the DeviceClass is as the class says.
func ready(c *v1alpha1.PartitionClass) bool {
	return has(c, v1alpha1.ConditionReady, metav1.ConditionTrue, "Applied") && c.Status.DeviceClass == c.Name
}

// has says whether a class has a condition of its present generation.
func has(c *v1alpha1.PartitionClass, kind string, status metav1.ConditionStatus, reason string, words ...string) bool {
	found := meta.FindStatusCondition(c.Status.Conditions, kind)
	return found != nil && found.Status == status && found.Reason == reason && found.ObservedGeneration == c.Generation &&
		!slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(found.Message, w) })
}

// counts waits until a class's status has such numbers.
func (e *env) counts(name string, nodes, devices, allocated, free int32) {
	e.Helper()
	e.untilClass(name, "have the right numbers", func(c *v1alpha1.PartitionClass) bool {
		s := c.Status
		return s.Nodes == nodes && s.Devices == devices && s.Allocated == allocated && s.Free == free
	})
}

// given is the one device that a Pod has, whichever way it asked.
func (e *env) given(pod string) resourceapi.DeviceRequestAllocationResult {
	e.Helper()
	p := e.ready(pod)
	results, err := e.Allocated(e.ctx, p, p.Spec.Containers[0])
	e.must(err)
	if len(results) != 1 {
		e.Fatalf("Pod %s has %+v, want one device", pod, results)
	}
	return results[0]
}

// TestClasses: an administrator names three shapes. DeviceClasses and statuses follow, nodes
// publish the partitions that are asked for and no others, and Pods get their part by
// the names, with a claim or without.
func TestClasses(t *testing.T) {
	e := withClasses(t)
	e.class("part", "{shape: {mig: {memory: 9G}}, hardware: {products: ['NVIDIA H100*']}, extendedResourceName: example.com/gpu-part}")
	e.class("shared", "{shape: {mps: {memory: 10Gi, compute: 25}}, hardware: {products: ['NVIDIA H100*']}, extendedResourceName: example.com/gpu-shared}")
	e.class("trainer", "{shape: {pair: {closeness: PXB}}, extendedResourceName: example.com/gpu-trainer}")
	e.counts("part", 1, 8*7, 0, 8*7)
	e.counts("shared", 1, 8, 0, 8*4)
	e.counts("trainer", 1, 8, 0, 8)
	e.offers(node1, "1g.10gb")

	e.pod("part", limits("example.com/gpu-part", 1))
	e.attribute(e.verify("part")[0], "profile", "1g.10gb")
	e.counts("part", 1, 8*7, 1, 8*7-1)
	e.pod("shared", limits("example.com/gpu-shared", 1), fills("9G", "2G"))
	if got := e.limited("shared")[0].MPS; got.Devices[0].Limit != 10<<30 || got.Percentage != 25 {
		t.Errorf("the program sees %+v", got)
	}
	if got := e.given("shared").Device; !strings.HasSuffix(got, "-shared") {
		t.Errorf("the share is of device %s", got)
	}
	e.apply(template("claimed", "{deviceClassName: shared}"))
	e.pod("claimed", fromTemplate("claimed"), fills("9G", "2G"))
	e.limited("claimed")
	e.pod("trainer", limits("example.com/gpu-trainer", 1))
	if got := e.given("trainer").Device; !strings.HasPrefix(got, "pair-") {
		t.Errorf("the trainer has %s", got)
	}
	// Of the eight GPUs one is in partitions, one is shared, and one is the trainer's.
	e.counts("part", 1, 8*7, 1, 6*7-1)
	e.counts("shared", 1, 8, 2, 6*4-2)
	e.counts("trainer", 1, 8, 1, 8-3)
	agree(t)

	e.must(e.DeletePods(e.ctx, e.namespace))
	e.counts("part", 1, 8*7, 0, 8*7)
	e.counts("shared", 1, 8, 0, 8*4)
	e.counts("trainer", 1, 8, 0, 8)
	_, err := e.WaitSlices(e.ctx, node1, "no other partitions, nor any that leave", func(s []*resourceapi.ResourceSlice) bool {
		return len(offered(harness.Devices(s))) == len(harness.Devices(s))
	})
	e.must(err)
}

// offers waits until a node offers partitions of that profile alone.
func (e *env) offers(node, profile string) {
	e.Helper()
	_, err := e.WaitSlices(e.ctx, node, "partitions "+profile+" alone", func(s []*resourceapi.ResourceSlice) bool {
		devices := harness.Devices(s)
		profiles := map[string]bool{}
		for _, name := range offered(devices) {
			if p := devices[name].Attributes["profile"].StringValue; p != nil {
				profiles[*p] = true
			}
		}
		return maps.Equal(profiles, map[string]bool{profile: true})
	})
	e.must(err)
}

// TestClassesExclude: while a share of one class is out, its GPU has none of another, and
// is not to be had whole.
func TestClassesExclude(t *testing.T) {
	e := withClasses(t)
	e.class("ten", "{shape: {mps: {memory: 10Gi}}, hardware: {products: ['NVIDIA L4']}, extendedResourceName: example.com/gpu-ten}")
	e.class("five", "{shape: {mps: {memory: 5Gi}}, hardware: {products: ['NVIDIA L4']}, extendedResourceName: example.com/gpu-five}")
	e.apply(selecting(`device.attributes["dovetail.dev"].productName == "NVIDIA L4"`))
	e.counts("ten", 1, 2, 0, 4)
	e.counts("five", 1, 2, 0, 8)

	e.pod("ten", limits("example.com/gpu-ten", 1), fills("9G", "2G"))
	e.limited("ten")
	e.pod("five", limits("example.com/gpu-five", 1), fills("4G", "2G"))
	e.limited("five")
	e.pod("second-ten", limits("example.com/gpu-ten", 1), fills("9G", "2G"))
	e.limited("second-ten")
	ten, five, second := e.place(e.given("ten").Device), e.place(e.given("five").Device), e.place(e.given("second-ten").Device)
	if ten == five || ten != second {
		t.Errorf("shares of 10Gi are of GPUs %s and %s, one of 5Gi of %s", ten, second, five)
	}
	e.counts("ten", 1, 2, 2, 0)
	e.counts("five", 1, 2, 1, 3)
	e.pod("whole", fromTemplate("one"))
	e.pod("third-ten", limits("example.com/gpu-ten", 1), fills("9G", "2G"))
	e.event("whole", "FailedScheduling", "cannot allocate all claims")
	e.gone("five")
	e.waitAnyReady("whole", "third-ten")
}

// waitAnyReady waits until one of two Pods runs, which wait for the same.
func (e *env) waitAnyReady(names ...string) {
	e.Helper()
	_, err := harness.Wait(e.ctx, e.Pods(e.namespace), "one of "+strings.Join(names, ", ")+" to run", func(pods []*corev1.Pod) (bool, error) {
		return slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return slices.Contains(names, p.Name) && harness.Ready(p) }), nil
	})
	e.must(err)
}

// TestClassMatchesNothing: such a class is taken, and says that nothing is like it.
func TestClassMatchesNothing(t *testing.T) {
	e := withClasses(t)
	e.class("odd", "{shape: {mig: {profile: 1g.11gb}}, hardware: {architectures: [Hopper]}, extendedResourceName: example.com/gpu-odd}")
	e.untilClass("odd", "say that there is no such device", func(c *v1alpha1.PartitionClass) bool {
		return has(c, v1alpha1.ConditionMatched, metav1.ConditionFalse, "NoDevice", "No node has partitions 1g.11gb of architecture Hopper", "dovetail-node inventory")
	})
	e.counts("odd", 0, 0, 0, 0)
	e.pod("waits", limits("example.com/gpu-odd", 1))
	e.event("waits", "FailedScheduling")
}

// TestClassOfLabelledNodes: a class is for nodes with a label, which one gets and loses.
func TestClassOfLabelledNodes(t *testing.T) {
	e := withClasses(t)
	e.class("pooled", "{shape: {gpu: {}}, hardware: {nodeSelector: {matchLabels: {pool: training}}}, extendedResourceName: example.com/gpu-pooled}")
	e.counts("pooled", 0, 0, 0, 0)
	e.afterwards(func() { e.must(e.Label(e.ctx, node2, "pool", "")) })
	e.must(e.Label(e.ctx, node2, "pool", "training"))
	e.counts("pooled", 1, 4, 0, 4)
	e.pod("train", limits("example.com/gpu-pooled", 1))
	e.verify("train")
	if got := e.ready("train").Spec.NodeName; got != node2 {
		t.Errorf("the Pod is on %s, which has not the label", got)
	}
	e.counts("pooled", 1, 4, 1, 3)
	check := e.undisturbed("train")
	e.must(e.Label(e.ctx, node2, "pool", ""))
	e.counts("pooled", 0, 0, 1, 0)
	check()
}

// TestForeignDeviceClass: one that an administrator has made is left as it is.
func TestForeignDeviceClass(t *testing.T) {
	e := withClasses(t)
	classes := e.Kube.ResourceV1().DeviceClasses()
	before, err := classes.Get(e.ctx, "small", metav1.GetOptions{}) // the chart's values name it
	e.must(err)
	class := &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
	class.Spec.Shape.GPU = &v1alpha1.GPUShape{}
	e.must(e.CreateClass(e.ctx, class))
	e.untilClass("small", "tell of the DeviceClass", func(c *v1alpha1.PartitionClass) bool {
		return has(c, v1alpha1.ConditionReady, metav1.ConditionFalse, "DeviceClassExists", "DeviceClass small", "another name")
	})
	e.must(e.DeleteClasses(e.ctx))
	after, err := classes.Get(context.WithoutCancel(e.ctx), "small", metav1.GetOptions{})
	e.must(err)
	if after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the DeviceClass was changed: %+v, then %+v", before, after)
	}
}
