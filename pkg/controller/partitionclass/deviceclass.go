package partitionclass

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

const managedBy = "app.kubernetes.io/managed-by"

// ensure makes the DeviceClass what it should be, and returns whether it is the
// class's own. A DeviceClass that is somebody else's is left alone, and reported.
func (r *Reconciler) ensure(ctx context.Context, pc *v1alpha1.PartitionClass, spec *resourceapi.DeviceClassSpec, now *report) (bool, error) {
	found := &resourceapi.DeviceClass{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: pc.Name}, found)
	switch {
	case apierrors.IsNotFound(err):
		err = r.create(ctx, pc, spec)
	case err == nil && !owns(pc, found):
		now.foreign(found)
		return false, nil
	case err == nil:
		err = errors.Join(r.hold(ctx, pc), r.correct(ctx, pc, spec, found))
	}
	now.deviceClass(err)
	if err != nil {
		return true, fmt.Errorf("DeviceClass %s: %w", pc.Name, err)
	}
	return true, nil
}

func (r *Reconciler) create(ctx context.Context, pc *v1alpha1.PartitionClass, spec *resourceapi.DeviceClassSpec) error {
	// First the finalizer: from then on the class cannot go before its DeviceClass.
	if err := r.hold(ctx, pc); err != nil {
		return err
	}
	// Not by server-side apply: that would take over one that somebody has made meanwhile.
	made := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: pc.Name}, Spec: *spec}
	mark(made, pc)
	return r.Client.Create(ctx, made, client.FieldOwner(Manager))
}

// hold gives the class its finalizer, which `kubectl replace` may have taken away.
func (r *Reconciler) hold(ctx context.Context, pc *v1alpha1.PartitionClass) error {
	if controllerutil.ContainsFinalizer(pc, Finalizer) {
		return nil
	}
	before := pc.DeepCopy()
	controllerutil.AddFinalizer(pc, Finalizer)
	return r.Client.Patch(ctx, pc, lockedPatch(before), client.FieldOwner(Manager))
}

// correct writes nothing where nothing differs.
func (r *Reconciler) correct(ctx context.Context, pc *v1alpha1.PartitionClass, spec *resourceapi.DeviceClassSpec, found *resourceapi.DeviceClass) error {
	if found.Labels[managedBy] == Manager && sameSpec(&found.Spec, spec) {
		return nil
	}
	right := found.DeepCopy()
	right.Spec = *spec
	mark(right, pc)
	return r.Client.Patch(ctx, right, lockedPatch(found), client.FieldOwner(Manager))
}

// deleteDeviceClass of a class, if it is its own.
func (r *Reconciler) deleteDeviceClass(ctx context.Context, pc *v1alpha1.PartitionClass) error {
	found := &resourceapi.DeviceClass{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: pc.Name}, found)
	if err == nil && owns(pc, found) {
		err = r.Client.Delete(ctx, found, client.Preconditions{UID: &found.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete DeviceClass %s: %w", pc.Name, err)
	}
	return nil
}

func owns(pc *v1alpha1.PartitionClass, found *resourceapi.DeviceClass) bool {
	owner := metav1.GetControllerOf(found)
	return owner != nil && owner.UID == pc.UID
}

func mark(dc *resourceapi.DeviceClass, pc *v1alpha1.PartitionClass) {
	if dc.Labels == nil {
		dc.Labels = map[string]string{}
	}
	dc.Labels[managedBy] = Manager
	if !owns(pc, dc) {
		dc.OwnerReferences = append(dc.OwnerReferences, *metav1.NewControllerRef(pc, v1alpha1.GroupVersion.WithKind(v1alpha1.PartitionClassKind)))
	}
}

func sameSpec(a, b *resourceapi.DeviceClassSpec) bool {
	return reflect.DeepEqual(a.Selectors, b.Selectors) &&
		ptr.Deref(a.ExtendedResourceName, "") == ptr.Deref(b.ExtendedResourceName, "") &&
		reflect.DeepEqual(values(a.Config), values(b.Config))
}

// values of configurations, whatever the spaces and the order of fields in their JSON.
func values(configs []resourceapi.DeviceClassConfiguration) []any {
	var all []any
	for _, c := range configs {
		if c.Opaque == nil {
			all = append(all, nil)
			continue
		}
		var value any
		if err := json.Unmarshal(c.Opaque.Parameters.Raw, &value); err != nil {
			value = string(c.Opaque.Parameters.Raw)
		}
		all = append(all, c.Opaque.Driver, value)
	}
	return all
}
