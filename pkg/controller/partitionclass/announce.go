package partitionclass

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

func referTo(dc *resourceapi.DeviceClass) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "DeviceClass", Name: dc.Name}
}

func (r *report) serves(name string) {
	r.set(v1alpha1.ConditionExtendedResource, metav1.ConditionTrue, ReasonApplied, "Pods get devices of the class by %s in their limits.", name)
}

func (r *report) contested(name string, other *resourceapi.DeviceClass) {
	r.rival = referTo(other)
	r.set(v1alpha1.ConditionExtendedResource, metav1.ConditionTrue, ReasonContested,
		"DeviceClass %s serves %s, too; Pods get devices of this class, whose DeviceClass was made later: let one of them serve another.", other.Name, name)
}

func (r *report) taken(name string, by *corev1.ObjectReference) {
	r.rival = by
	r.set(v1alpha1.ConditionExtendedResource, metav1.ConditionFalse, ReasonTaken,
		"%s %s serves %s, so that Pods get no devices of this class by it: use another name, or take it out of there. Claims are not affected.", by.Kind, by.Name, name)
}

// was says what became of the extended resource when it was last looked at.
func (r *report) was(reason string) bool {
	c := meta.FindStatusCondition(r.status.Conditions, v1alpha1.ConditionExtendedResource)
	return c != nil && c.Reason == reason
}

// announce tells of an extended resource that is no longer, or again, the class's. Events
// that differ in their note alone would be taken for one and the same, so each is about
// the rival, too.
func (r *Reconciler) announce(pc *v1alpha1.PartitionClass, now *report) {
	was := meta.FindStatusCondition(pc.Status.Conditions, v1alpha1.ConditionExtendedResource)
	is := meta.FindStatusCondition(now.status.Conditions, v1alpha1.ConditionExtendedResource)
	switch {
	case is == nil || was != nil && was.Reason == is.Reason && was.Message == is.Message:
	case is.Reason != ReasonApplied:
		r.Events.Eventf(pc, now.rival, corev1.EventTypeWarning, "ExtendedResource"+is.Reason, "Reconcile", "%s", is.Message)
	case was != nil && was.Reason != ReasonApplied:
		r.Events.Eventf(pc, nil, corev1.EventTypeNormal, "ExtendedResourceServed", "Reconcile", "%s", is.Message)
	}
}
