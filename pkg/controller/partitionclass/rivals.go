package partitionclass

import (
	"context"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

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
