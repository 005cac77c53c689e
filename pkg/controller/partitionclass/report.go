package partitionclass

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/controller/usage"
)

// Reasons of conditions.
const (
	ReasonApplied      = "Applied"           // Ready: the DeviceClass is as the class says
	ReasonExists       = "DeviceClassExists" // Ready: there is one that is somebody else's
	ReasonRefused      = "Refused"           // Ready: the API server does not take the DeviceClass
	ReasonInvalid      = "Invalid"           // the class itself is wrong
	ReasonFound        = "DevicesFound"      // Matched
	ReasonNoDevice     = "NoDevice"          // Matched
	ReasonNotPublished = "NotPublished"      // Matched: the class is retired
	ReasonSelector     = "SelectorFailed"    // Matched: a device lacks what the selector reads
	ReasonInUse        = "InUse"             // Deleting
	ReasonTaken        = "Taken"             // ExtendedResource: another DeviceClass serves it
	ReasonContested    = "Contested"         // ExtendedResource: another one serves it, too, but the scheduler goes by this class's
)

// report is a class's status in the making.
type report struct {
	name       string
	generation int64
	deleting   bool
	status     v1alpha1.PartitionClassStatus
	rival      *corev1.ObjectReference // for the extended resource; nil: there is none
}

func newReport(pc *v1alpha1.PartitionClass) *report {
	now := &report{name: pc.Name, generation: pc.Generation, deleting: !pc.DeletionTimestamp.IsZero()}
	// Times of transitions stay those that they were.
	now.status.Conditions = append(now.status.Conditions, pc.Status.Conditions...)
	now.status.DeviceClass = pc.Status.DeviceClass
	return now
}

func (r *report) set(kind string, status metav1.ConditionStatus, reason, format string, args ...any) {
	meta.SetStatusCondition(&r.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...), ObservedGeneration: r.generation,
	})
}

// unset removes a condition that says nothing now.
func (r *report) unset(kind string) { meta.RemoveStatusCondition(&r.status.Conditions, kind) }

// invalid: what was made for the class before stays as it is, and so do devices that
// claims have.
func (r *report) invalid(err error, allocated int) {
	r.status.Allocated = int32(allocated)
	r.set(v1alpha1.ConditionReady, metav1.ConditionFalse, ReasonInvalid, "%v", err)
	r.set(v1alpha1.ConditionMatched, metav1.ConditionUnknown, ReasonInvalid, "The class is not valid, so nothing was looked for.")
	r.inUse("") // whether it gives out more is as it was before
}

func (r *report) foreign(found *resourceapi.DeviceClass) {
	r.status.DeviceClass = ""
	if owner := metav1.GetControllerOf(found); owner != nil && owner.Kind == v1alpha1.PartitionClassKind && owner.Name == r.name {
		r.set(v1alpha1.ConditionReady, metav1.ConditionFalse, ReasonExists,
			"DeviceClass %s belongs to an earlier PartitionClass of this name, and goes with it.", r.name)
		return
	}
	r.set(v1alpha1.ConditionReady, metav1.ConditionFalse, ReasonExists,
		"There is a DeviceClass %s that was not made for this class: delete it, or give the class another name.", r.name)
}

func (r *report) deviceClass(err error) {
	switch {
	case err == nil:
		r.status.DeviceClass = r.name
		r.set(v1alpha1.ConditionReady, metav1.ConditionTrue, ReasonApplied, "DeviceClass %s is as the class says.", r.name)
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		// Somebody else was faster; it is tried again at once.
	default:
		r.set(v1alpha1.ConditionReady, metav1.ConditionFalse, ReasonRefused, "DeviceClass %s: %v", r.name, err)
	}
}

func (r *report) counted(c *class.Class, counts usage.Counts, err error) {
	r.status.Nodes, r.status.Devices = int32(counts.Nodes), int32(counts.Devices)
	r.status.Allocated, r.status.Free = int32(counts.Allocated), int32(counts.Free)
	switch {
	case err != nil:
		r.set(v1alpha1.ConditionMatched, metav1.ConditionUnknown, ReasonSelector,
			"%v. Pods with claims of this class cannot be scheduled: bring the agents of all nodes to the controller's version.", err)
	case !c.Published:
		r.set(v1alpha1.ConditionMatched, metav1.ConditionFalse, ReasonNotPublished,
			"The class is retired (published: false): new claims get no device through it.")
	case counts.Devices == 0:
		r.set(v1alpha1.ConditionMatched, metav1.ConditionFalse, ReasonNoDevice,
			"No node has %s. What a node has: dovetail-node inventory, there.", c)
	default:
		r.set(v1alpha1.ConditionMatched, metav1.ConditionTrue, ReasonFound, "Nodes have %s.", c)
	}
	if c.Published {
		r.inUse(" Set published to false to give out no more.")
	} else {
		r.inUse(" It is retired (published: false), and gives out no more.")
	}
}

// inUse says of a class that is being deleted why it is still there, and what more there
// is to say of that.
func (r *report) inUse(more string) {
	if r.deleting {
		r.set(v1alpha1.ConditionDeleting, metav1.ConditionTrue, ReasonInUse,
			"Claims have devices of this class (status.allocated): it goes with the last of them.%s", more)
	}
}
