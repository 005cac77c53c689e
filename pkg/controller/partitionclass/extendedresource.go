package partitionclass

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/class"
)

// One DeviceClass at a time should serve an extended resource. Of several, the scheduler
// goes by the one that was made last, and forgets all of them when it sees any go, or
// give the name up (k8s.io/dynamic-resource-allocation v0.37.2,
// deviceclass/extendedresourcecache). So who has a name keeps it, and who comes later is
// given a DeviceClass without.

// serve decides whether the class has its extended resource, and takes it out of spec where
// it has not. The DeviceClasses that are read may be a moment old: then two have the name,
// and it is reported which one the scheduler goes by.
func (r *Reconciler) serve(ctx context.Context, pc *v1alpha1.PartitionClass, spec *resourceapi.DeviceClassSpec, now *report) error {
	name := ptr.Deref(spec.ExtendedResourceName, "")
	if name == "" {
		now.unset(v1alpha1.ConditionExtendedResource)
		return nil
	}
	own, others, err := r.serving(ctx, pc, name)
	switch {
	case err != nil:
		return err
	case own != nil && !owns(pc, own): // of which Ready tells
		now.unset(v1alpha1.ConditionExtendedResource)
		return nil
	}
	has := own != nil && serves(own, name)
	first := newest(others)
	switch {
	case first != nil && has && later(own, first):
		if err := r.remind(ctx, pc, own, name, now.was(ReasonTaken)); err != nil {
			return err
		}
		now.contested(name, first)
		return nil
	case first != nil:
		if !has {
			spec.ExtendedResourceName = nil
		}
		now.taken(name, referTo(first))
		return nil
	}
	rival, err := r.rival(ctx, pc, name, has)
	switch {
	case err != nil:
		return err
	case rival != "":
		spec.ExtendedResourceName = nil
		now.taken(name, &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PartitionClassKind, Name: rival})
		return nil
	case has:
		if err := r.remind(ctx, pc, own, name, now.was(ReasonTaken) || now.was(ReasonContested)); err != nil {
			return err
		}
	default:
		r.forgotten.take(pc.Name) // the scheduler sees it in what is written now
	}
	now.serves(name)
	return nil
}

// serving finds the DeviceClass of the class's name, and which others serve a resource.
func (r *Reconciler) serving(ctx context.Context, pc *v1alpha1.PartitionClass, name string) (own *resourceapi.DeviceClass, others []*resourceapi.DeviceClass, err error) {
	var all resourceapi.DeviceClassList
	if err := r.Client.List(ctx, &all); err != nil {
		return nil, nil, fmt.Errorf("list DeviceClasses: %w", err)
	}
	for i := range all.Items {
		switch dc := &all.Items[i]; {
		case dc.Name == pc.Name:
			own = dc
		case serves(dc, name):
			others = append(others, dc)
		}
	}
	return own, others, nil
}

func serves(dc *resourceapi.DeviceClass, name string) bool {
	return ptr.Deref(dc.Spec.ExtendedResourceName, "") == name
}

// later says whether the scheduler goes by a rather than b, where they serve the same
// (k8s.io/api/resource/v1, DeviceClassSpec).
func later(a, b *resourceapi.DeviceClass) bool {
	if made := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); made != 0 {
		return made > 0
	}
	return a.Name < b.Name
}

// newest is the one that the scheduler goes by; nil: there is none.
func newest(all []*resourceapi.DeviceClass) *resourceapi.DeviceClass {
	var found *resourceapi.DeviceClass
	for _, dc := range all {
		if found == nil || later(dc, found) {
			found = dc
		}
	}
	return found
}

// rival names a class that is to have the name instead, which no DeviceClass has yet: one
// that came first. Who has it already gives it up only when it is retired, and to one
// that is not.
func (r *Reconciler) rival(ctx context.Context, pc *v1alpha1.PartitionClass, name string, has bool) (string, error) {
	var all v1alpha1.PartitionClassList
	if err := r.Client.List(ctx, &all); err != nil {
		return "", fmt.Errorf("list PartitionClasses: %w", err)
	}
	first := pc
	for i := range all.Items {
		other := &all.Items[i]
		if other.Name == pc.Name || other.Spec.ExtendedResourceName != name || !other.DeletionTimestamp.IsZero() {
			continue
		}
		if has && retired(pc) == retired(other) || !before(other, first) {
			continue
		}
		if can, err := r.canServe(ctx, other); err != nil {
			return "", err
		} else if can {
			first = other
		}
	}
	if first == pc {
		return "", nil
	}
	return first.Name, nil
}

// before says which of two classes that want the same comes first.
func before(a, b *v1alpha1.PartitionClass) bool {
	if retired(a) != retired(b) {
		return retired(b)
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

func retired(pc *v1alpha1.PartitionClass) bool { return !ptr.Deref(pc.Spec.Published, true) }

// canServe says whether a class can have a DeviceClass at all.
func (r *Reconciler) canServe(ctx context.Context, pc *v1alpha1.PartitionClass) (bool, error) {
	if _, err := class.Compile(pc); err != nil {
		return false, nil //nolint:nilerr // which its own status says
	}
	found := &resourceapi.DeviceClass{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(pc), found)
	return err != nil || owns(pc, found), client.IgnoreNotFound(err)
}

// remind has the scheduler know that the DeviceClass serves a name, where it may have
// forgotten: by what was reported, or by what was seen since.
func (r *Reconciler) remind(ctx context.Context, pc *v1alpha1.PartitionClass, dc *resourceapi.DeviceClass, name string, reported bool) error {
	if seen := r.forgotten.take(pc.Name); !seen && !reported {
		return nil
	}
	if err := r.renew(ctx, dc, name); err != nil {
		r.forgotten.add(pc.Name)
		return fmt.Errorf("DeviceClass %s: have the scheduler see %s: %w", dc.Name, name, err)
	}
	return nil
}

// renew has the scheduler see anew that the DeviceClass serves a name: when another one
// went that served it too, it has forgotten the name.
func (r *Reconciler) renew(ctx context.Context, dc *resourceapi.DeviceClass, name string) error {
	for _, value := range []*string{nil, ptr.To(name)} {
		changed := dc.DeepCopy()
		changed.Spec.ExtendedResourceName = value
		if err := r.Client.Patch(ctx, changed, lockedPatch(dc), client.FieldOwner(Manager)); err != nil {
			return err
		}
		dc = changed
	}
	return nil
}
