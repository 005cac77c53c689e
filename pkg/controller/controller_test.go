package controller

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationapi "k8s.io/api/coordination/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// TestPartitionClasses goes through the lives of classes, on a real API server.
func TestPartitionClasses(t *testing.T) {
	w := newWorld(t)
	t.Run("from a class to its devices", func(t *testing.T) { w.T = t; w.fromClassToDevices() })
	t.Run("nothing changes, nothing is written", func(t *testing.T) { w.T = t; w.quiet() })
	t.Run("drift", func(t *testing.T) { w.T = t; w.drift() })
	t.Run("somebody else's DeviceClass", func(t *testing.T) { w.T = t; w.foreign() })
	t.Run("changed and retired", func(t *testing.T) { w.T = t; w.changed() })
	t.Run("ruled out", func(t *testing.T) { w.T = t; w.ruledOut() })
	t.Run("deleted while in use", func(t *testing.T) { w.T = t; w.deletedInUse() })
	t.Run("many claims, few writes", func(t *testing.T) { w.T = t; w.manyClaims() })
	t.Run("two replicas", func(t *testing.T) { w.T = t; w.twoReplicas() })
}

func (w *world) fromClassToDevices() {
	small := w.class("small", `{shape: {mps: {memory: 10Gi, compute: 30, enforcement: BestEffort}}, extendedResourceName: example.com/gpu-small}`)
	w.untilClass("small", "a class without devices", func(pc *v1alpha1.PartitionClass) bool {
		return pc != nil && pc.Status.DeviceClass == "small" &&
			has(pc, v1alpha1.ConditionReady, "True", "Applied", "as the class says") &&
			has(pc, v1alpha1.ConditionMatched, "False", "NoDevice", `No node has shares by MPS of 10Gi of memory.`)
	})
	if n := w.writes.Load(); n != 3 { // finalizer, DeviceClass, status
		w.Errorf("%d writes", n)
	}
	dc := w.deviceClass("small")
	if owner := metav1.GetControllerOf(dc); owner == nil || owner.UID != small.UID || ptr.Deref(dc.Spec.ExtendedResourceName, "") != "example.com/gpu-small" ||
		!strings.Contains(string(dc.Spec.Config[0].Opaque.Parameters.Raw), `"locked":["enforcement"]`) {
		w.Errorf("%+v", dc)
	}

	w.class("tenth", `{shape: {mig: {memory: 10G}}}`)
	m := simulatortest.Describe(w.T, "dgx-h100")
	wanted, err := class.WantedOn([]v1alpha1.PartitionClass{*small}, nil, m.GPUs)
	w.must(err)
	m.Sharing = machine.Sharing{Sizes: wanted.Sizes(&m.GPUs[0])}
	w.sched.Add("small", dc.Spec)
	w.publish("node-1", m)
	w.untilClass("small", "devices", func(pc *v1alpha1.PartitionClass) bool {
		s := pc.Status
		return has(pc, v1alpha1.ConditionMatched, "True", "DevicesFound", "Nodes have shares by MPS of 10Gi of memory.") && s.Nodes == 1 && s.Devices == 8 && s.Allocated == 0 && s.Free == 8*3
	})
	w.untilClass("tenth", "devices", func(pc *v1alpha1.PartitionClass) bool {
		return pc.Status.Nodes == 1 && pc.Status.Devices == 8*7 && pc.Status.Free == 8*7
	})
	w.claim("small")
	w.untilClass("small", "one share less", func(pc *v1alpha1.PartitionClass) bool { return pc.Status.Allocated == 1 && pc.Status.Free == 8*3-1 })
	w.untilClass("tenth", "one GPU less", func(pc *v1alpha1.PartitionClass) bool { return pc.Status.Allocated == 0 && pc.Status.Free == 7*7 })
}

// quiet: a controller that starts anew finds that all is right.
func (w *world) quiet() {
	w.stop()
	before := w.writes.Load()
	w.start()
	w.untilMeasured("small", "tenth")
	w.stop() // what was begun is finished
	if n := w.writes.Load() - before; n != 0 {
		w.Errorf("%d writes", n)
	}
	w.start()
}

func (w *world) drift() {
	right := w.deviceClass("small")
	wrong := right.DeepCopy()
	wrong.Spec.Selectors[0].CEL.Expression = "true"
	wrong.Spec.ExtendedResourceName = ptr.To("example.com/other")
	wrong.Spec.Config = nil
	wrong.Labels = nil
	w.must(w.Update(w.Context(), wrong))
	until(w, "as it was", "small", &resourceapi.DeviceClassList{}, func(dc *resourceapi.DeviceClass) bool {
		return dc != nil && dc.Spec.Selectors[0].CEL.Expression == right.Spec.Selectors[0].CEL.Expression &&
			*dc.Spec.ExtendedResourceName == "example.com/gpu-small" && len(dc.Spec.Config) == 1 && len(dc.Labels) == 1
	})
	w.must(w.Delete(w.Context(), w.deviceClass("small")))
	until(w, "a new one", "small", &resourceapi.DeviceClassList{}, func(dc *resourceapi.DeviceClass) bool { return dc != nil && dc.UID != right.UID })
}

func (w *world) foreign() {
	theirs := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
	w.must(w.Create(w.Context(), theirs))
	w.class("taken", `{shape: {gpu: {}}}`)
	w.untilClass("taken", "the report", func(pc *v1alpha1.PartitionClass) bool {
		return pc != nil && has(pc, v1alpha1.ConditionReady, "False", "DeviceClassExists", "not made for this class") && pc.Status.DeviceClass == "" && len(pc.Finalizers) == 0
	})
	if now := w.deviceClass("taken"); now.ResourceVersion != theirs.ResourceVersion {
		w.Errorf("it was changed: %+v", now)
	}
	w.must(w.Delete(w.Context(), theirs))
	w.untilClass("taken", "its own DeviceClass", func(pc *v1alpha1.PartitionClass) bool {
		return pc != nil && has(pc, v1alpha1.ConditionReady, "True", "Applied", "") && pc.Status.DeviceClass == "taken"
	})
}

func (w *world) changed() {
	w.class("later", `{shape: {gpu: {}}}`)
	w.patch("later", `{"spec":{"hardware":{"products":["Tesla T4"]}}}`)
	w.untilClass("later", "no devices", func(pc *v1alpha1.PartitionClass) bool {
		return has(pc, v1alpha1.ConditionMatched, "False", "NoDevice", "No node has whole GPUs of Tesla T4") && pc.Status.Devices == 0
	})
	w.patch("later", `{"spec":{"hardware":null}}`)
	w.untilClass("later", "devices", func(pc *v1alpha1.PartitionClass) bool { return pc.Status.Devices == 8 && pc.Status.Free == 7 })
	w.patch("later", `{"spec":{"published":false}}`)
	w.untilClass("later", "no devices", func(pc *v1alpha1.PartitionClass) bool {
		return has(pc, v1alpha1.ConditionMatched, "False", "NotPublished", "published: false") && pc.Status.Devices == 0
	})
	if expression := w.deviceClass("later").Spec.Selectors[0].CEL.Expression; expression != "false" {
		w.Errorf("its DeviceClass takes %s", expression)
	}
	// Nobody uses it: it goes at once, and its DeviceClass with it.
	w.must(w.Delete(w.Context(), &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: "later"}}))
	untilGone(w, "later", &v1alpha1.PartitionClass{}, &v1alpha1.PartitionClassList{})
	if err := w.Get(w.Context(), client.ObjectKey{Name: "later"}, &resourceapi.DeviceClass{}); client.IgnoreNotFound(err) != nil || err == nil {
		w.Errorf("its DeviceClass: error %v", err)
	}
}

// ruledOut: an administrator keeps claims away from a GPU.
func (w *world) ruledOut() {
	w.class("gpus", `{shape: {gpu: {}}}`)
	w.untilClass("gpus", "all but one", func(pc *v1alpha1.PartitionClass) bool { return pc != nil && pc.Status.Free == 7 })
	rule := &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "repair"}}
	rule.Spec.DeviceSelector = &resourceapi.DeviceTaintSelector{Pool: ptr.To("node-1"), Device: ptr.To("gpu-df-00")}
	rule.Spec.Taint = resourceapi.DeviceTaint{Key: "example.com/repair", Effect: resourceapi.DeviceTaintEffectNoSchedule}
	w.must(w.Create(w.Context(), rule))
	w.untilClass("gpus", "one less", func(pc *v1alpha1.PartitionClass) bool { return pc.Status.Free == 6 && pc.Status.Devices == 8 })
	w.must(w.Delete(w.Context(), rule))
	w.untilClass("gpus", "as many as before", func(pc *v1alpha1.PartitionClass) bool { return pc.Status.Free == 7 })
	w.must(w.Delete(w.Context(), &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}}))
	untilGone(w, "gpus", &v1alpha1.PartitionClass{}, &v1alpha1.PartitionClassList{})
}

func (w *world) patch(name, patch string) {
	w.Helper()
	pc := &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.must(w.Patch(w.Context(), pc, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func (w *world) deletedInUse() {
	w.must(w.Delete(w.Context(), &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: "small"}}))
	w.untilClass("small", "a word why it stays", func(pc *v1alpha1.PartitionClass) bool {
		return pc != nil && has(pc, v1alpha1.ConditionDeleting, "True", "InUse", "it goes with the last of them") && pc.Status.Allocated == 1
	})
	w.deviceClass("small")
	// A controller that starts now must not think that nobody has anything.
	w.stop()
	w.start()
	second := w.claim("small")
	w.untilClass("small", "two", func(pc *v1alpha1.PartitionClass) bool { return pc != nil && pc.Status.Allocated == 2 })
	w.must(w.Delete(w.Context(), second))
	w.untilClass("small", "one", func(pc *v1alpha1.PartitionClass) bool { return pc != nil && pc.Status.Allocated == 1 })
	w.must(w.DeleteAllOf(w.Context(), &resourceapi.ResourceClaim{}, client.InNamespace("default")))
	untilGone(w, "small", &v1alpha1.PartitionClass{}, &v1alpha1.PartitionClassList{})
	untilGone(w, "small", &resourceapi.DeviceClass{}, &resourceapi.DeviceClassList{})
}

func (w *world) manyClaims() {
	w.sched.Add("tenth", w.deviceClass("tenth").Spec)
	w.untilClass("tenth", "all free", func(pc *v1alpha1.PartitionClass) bool { return pc != nil && pc.Status.Free == 8*7 })
	w.stop()
	w.delay = time.Second // few times, however long it takes to make them
	w.start()
	w.untilMeasured("tenth")
	before := w.writes.Load()
	const claims = 30
	for range claims {
		w.claim("tenth")
	}
	w.untilClass("tenth", "all of them", func(pc *v1alpha1.PartitionClass) bool { return pc != nil && pc.Status.Allocated == claims })
	if n := w.writes.Load() - before; n >= 2*claims { // of two classes: the GPUs are gone for the other
		w.Errorf("%d writes for %d claims", n, claims)
	}
}

// twoReplicas: one works; when it ends the other does, at once, and finds all as it
// was left.
func (w *world) twoReplicas() {
	var second atomic.Int64
	stop := w.replica(prometheus.NewRegistry(), &second)
	defer stop()
	w.class("while-two", `{shape: {gpu: {}}}`)
	w.untilClass("while-two", "its DeviceClass", func(pc *v1alpha1.PartitionClass) bool { return pc != nil && pc.Status.DeviceClass != "" })
	if n := second.Load(); n != 0 {
		w.Errorf("the second replica has written %d times", n)
	}
	first := w.leader()
	w.stop()
	if w.leader() == first {
		w.Error("the first replica has ended, and has not given up the Lease")
	}
	w.class("after-one", `{shape: {gpu: {}}}`)
	w.untilClass("after-one", "its DeviceClass", func(pc *v1alpha1.PartitionClass) bool { return pc != nil && pc.Status.DeviceClass != "" })
	if n := second.Load(); n != 3 {
		w.Errorf("the second replica has written %d times, want for the new class alone", n)
	}
}

// leader is who has the Lease, or "".
func (w *world) leader() string {
	w.Helper()
	var lease coordinationapi.Lease
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: LeaseName}, &lease))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}
