package partitionclass

import (
	"context"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

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

// deviceClasses have the names of their classes. The controller's own writes come back
// here, too, but not before the caches have the rest of what it wrote. Whether others
// serve an extended resource matters to all classes that want it.
func (r *Reconciler) deviceClasses() handler.EventHandler {
	return either(func(ctx context.Context, q queue, name string, before, now client.Object) {
		q.AddAfter(requestFor(name), r.Delay)
		had, has := servedBy(before), servedBy(now)
		for _, pc := range r.wanting(ctx, had, has) {
			if had != has && had == pc.Spec.ExtendedResourceName && pc.Name != name {
				r.forgotten.add(pc.Name)
			}
			q.AddAfter(requestFor(pc.Name), r.Delay)
		}
	})
}

// servedBy is a DeviceClass's extended resource; empty where there is none.
func servedBy(object client.Object) string {
	dc, ok := object.(*resourceapi.DeviceClass)
	if !ok {
		return ""
	}
	return ptr.Deref(dc.Spec.ExtendedResourceName, "")
}

// rivals of a class for its extended resource.
func (r *Reconciler) rivals() handler.EventHandler {
	return either(func(ctx context.Context, q queue, _ string, before, now client.Object) {
		if before != nil && now != nil && before.GetGeneration() == now.GetGeneration() &&
			!seenOtherwise(event.UpdateEvent{ObjectOld: before, ObjectNew: now}) {
			return
		}
		for _, pc := range r.wanting(ctx, wantedBy(before), wantedBy(now)) {
			q.AddAfter(requestFor(pc.Name), r.Delay)
		}
	})
}

// wantedBy is a class's extended resource; empty where there is none.
func wantedBy(object client.Object) string {
	pc, ok := object.(*v1alpha1.PartitionClass)
	if !ok {
		return ""
	}
	return pc.Spec.ExtendedResourceName
}

// either handles all events alike; before is nil of an object that is new, and now of one
// that has gone.
func either(changed func(ctx context.Context, q queue, name string, before, now client.Object)) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			changed(ctx, q, e.Object.GetName(), nil, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			changed(ctx, q, e.ObjectNew.GetName(), e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			changed(ctx, q, e.Object.GetName(), e.Object, nil)
		},
	}
}

// wanting are the classes that want one of these extended resources.
func (r *Reconciler) wanting(ctx context.Context, had, has string) []v1alpha1.PartitionClass {
	if had == "" && has == "" {
		return nil
	}
	var all v1alpha1.PartitionClassList
	if err := r.Client.List(ctx, &all); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list PartitionClasses; those that want an extended resource are looked at later", "had", had, "has", has)
		return nil
	}
	return slices.DeleteFunc(all.Items, func(pc v1alpha1.PartitionClass) bool {
		name := pc.Spec.ExtendedResourceName
		return name == "" || name != had && name != has
	})
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
