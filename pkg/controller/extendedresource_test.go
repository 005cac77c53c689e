package controller

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsapi "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// TestExtendedResource: of DeviceClasses that want the same extended resource one has it,
// whoever comes and goes, and the scheduler's own cache says the same.
func TestExtendedResource(t *testing.T) {
	w := newWorld(t)
	const name = "example.com/gpu"
	spec := `{shape: {gpu: {}}, extendedResourceName: ` + name + `}`
	scheduler := w.scheduler()
	taken := func(class, by string) {
		t.Helper()
		w.untilClass(class, "that it has no extended resource", func(pc *v1alpha1.PartitionClass) bool {
			return pc != nil && has(pc, v1alpha1.ConditionExtendedResource, "False", "Taken", by+" serves "+name) && has(pc, v1alpha1.ConditionReady, "True", "Applied", "")
		})
	}
	serves := func(class string) {
		t.Helper()
		w.untilClass(class, "its extended resource", func(pc *v1alpha1.PartitionClass) bool {
			return pc != nil && has(pc, v1alpha1.ConditionExtendedResource, "True", "Applied", name)
		})
		w.eventually("the scheduler goes by "+class, func() bool {
			dc := scheduler.GetDeviceClass(name)
			return dc != nil && dc.Name == class
		})
	}
	w.class("first", spec)
	serves("first")
	w.class("second", spec)
	taken("second", "DeviceClass first")
	if dc := w.deviceClass("second"); dc.Spec.ExtendedResourceName != nil {
		t.Errorf("it serves %s", *dc.Spec.ExtendedResourceName)
	}
	serves("first")
	w.eventually("an event says so", func() bool {
		var all eventsapi.EventList
		w.must(w.List(t.Context(), &all))
		return slices.ContainsFunc(all.Items, func(e eventsapi.Event) bool {
			return e.Reason == "ExtendedResourceTaken" && e.Regarding.Name == "second" && e.Type == corev1.EventTypeWarning
		})
	})

	// Somebody else's, which is newer and which the scheduler therefore goes by.
	theirs := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "a-newer-one"}, Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: ptr.To(name)}}
	made := w.deviceClass("first").CreationTimestamp
	w.eventually("another second", func() bool { return time.Since(made.Time) > time.Second })
	w.must(w.Create(t.Context(), theirs))
	taken("first", "DeviceClass a-newer-one")
	w.must(w.Delete(t.Context(), theirs))
	serves("first") // of which the scheduler has forgotten

	w.must(w.Delete(t.Context(), &v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: "first"}}))
	serves("second")
}

// eventually waits until something is so that no watch tells of.
func (w *world) eventually(what string, is func() bool) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), 10*time.Millisecond, patiencetest.Limit, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		w.Fatalf("%s: does not come about", what)
	}
}

// scheduler is what the scheduler knows of extended resources.
func (w *world) scheduler() *extendedresourcecache.ExtendedResourceCache {
	w.Helper()
	kube, err := kubernetes.NewForConfig(w.config)
	w.must(err)
	factory := informers.NewSharedInformerFactory(kube, 0)
	known := extendedresourcecache.NewExtendedResourceCache(klog.Background())
	_, err = factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(known)
	w.must(err)
	factory.Start(w.Context().Done())
	factory.WaitForCacheSync(w.Context().Done())
	w.Cleanup(factory.Shutdown)
	return known
}
