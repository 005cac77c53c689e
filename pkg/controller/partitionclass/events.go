package partitionclass

import (
	"context"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// changes of objects of a type, as a handler.
func changes(set, gone func(client.Object, queue)) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { set(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { set(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { gone(e.Object, q) },
	}
}

// lostFinalizer is news of a class beside a new generation. The controller's own writes,
// to the status and of the finalizer, are none.
func lostFinalizer(e event.UpdateEvent) bool {
	return controllerutil.ContainsFinalizer(e.ObjectOld, Finalizer) && !controllerutil.ContainsFinalizer(e.ObjectNew, Finalizer)
}

// seenOtherwise is news, too: a class is as it was, but the API server shows more or less
// of it than before, since the CustomResourceDefinition was changed. The server ends
// watches a moment after that, and until then leaves out of the classes in them what the
// old definition did not have.
func seenOtherwise(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.PartitionClass)
	now, also := e.ObjectNew.(*v1alpha1.PartitionClass)
	return ok && also && !equality.Semantic.DeepEqual(before.Spec, now.Spec)
}

func (r *Reconciler) slices() handler.EventHandler {
	return changes(
		func(object client.Object, q queue) {
			if slice, ok := object.(*resourceapi.ResourceSlice); ok {
				r.Usage.SetSlice(slice)
				r.later(q)
			}
		},
		func(object client.Object, q queue) {
			if slice, ok := object.(*resourceapi.ResourceSlice); ok {
				r.Usage.DeleteSlice(slice)
				r.later(q)
			}
		})
}

// claims change what is free of any class that shares hardware with theirs.
func (r *Reconciler) claims() handler.EventHandler {
	return changes(
		func(object client.Object, q queue) {
			if claim, ok := object.(*resourceapi.ResourceClaim); ok && r.Usage.SetClaim(claim) {
				r.later(q)
			}
		},
		func(object client.Object, q queue) {
			if claim, ok := object.(*resourceapi.ResourceClaim); ok && r.Usage.DeleteClaim(claim) {
				r.later(q)
			}
		})
}

// taintRules of administrators change what is free.
func (r *Reconciler) taintRules() handler.EventHandler {
	return changes(
		func(object client.Object, q queue) {
			if rule, ok := object.(*resourceapi.DeviceTaintRule); ok && r.Usage.SetTaintRule(rule) {
				r.later(q)
			}
		},
		func(object client.Object, q queue) {
			if r.Usage.DeleteTaintRule(object.GetName()) {
				r.later(q)
			}
		})
}

// later counts all classes anew, once for all that changes meanwhile.
func (r *Reconciler) later(q queue) {
	delay := max(r.Delay, time.Duration(r.Usage.Nodes())*delayForNode)
	for _, name := range r.Usage.Classes() {
		q.AddAfter(requestFor(name), delay)
	}
}

func requestFor(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}
