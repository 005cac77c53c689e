package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// nodeEvents tells on the Node object what its hardware is up to. Recording never
// waits; an API server that is away costs events, nothing else.
type nodeEvents struct {
	recorder events.EventRecorder
	node     *corev1.Node
	stop     func()
}

func newNodeEvents(ctx context.Context, kube kubernetes.Interface, name string) (*nodeEvents, error) {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("record events: %w", err)
	}
	return &nodeEvents{
		recorder: broadcaster.NewRecorder(scheme.Scheme, catalog.DriverName),
		// kubectl describe node finds events by this UID, as the kubelet writes them.
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}},
		stop: broadcaster.Shutdown,
	}, nil
}

// changes reports each fault and sickness that is new, and each that is over.
func (e *nodeEvents) changes(ctx context.Context, before, now *machine.Machine) {
	logger := klog.FromContext(ctx)
	was, is := troubles(before), troubles(now)
	for key, message := range is {
		if _, known := was[key]; !known {
			logger.Info("Device has a fault", "device", key.device, "kind", key.kind, "message", message)
			e.record(key.reference(), corev1.EventTypeWarning, "DeviceFault", "Inspect", key.device+": "+message)
		}
	}
	for key := range was {
		if _, still := is[key]; !still {
			logger.Info("Device no longer has a fault", "device", key.device, "kind", key.kind)
			e.record(key.reference(), corev1.EventTypeNormal, "DeviceRecovered", "Inspect", fmt.Sprintf("%s: no longer %s", key.device, key.kind))
		}
	}
}

// claimProblem reports a problem with a prepared claim.
func (e *nodeEvents) claimProblem(claimUID string, err error) {
	reason := "ClaimNotMended"
	switch {
	case errors.Is(err, failure.Corrupt):
		reason = "JournalDamaged"
	case errors.Is(err, failure.Busy):
		reason = "StillInUse"
	}
	claim := &corev1.ObjectReference{Kind: "ResourceClaim", UID: types.UID(claimUID)}
	e.record(claim, corev1.EventTypeWarning, reason, "Recover", err.Error())
}

// releaseWaits reports a claim that cannot be released yet, on the claim itself: who
// looks at a Pod that does not end finds it there.
func (e *nodeEvents) releaseWaits(c journal.Claim, err error) {
	e.onClaim(c, "ReleaseWaits", "Release", err.Error())
}

// partitionRemade reports, on the claim, a partition that its running Pods no longer
// have: the driver may give what they have of it to another one.
func (e *nodeEvents) partitionRemade(c journal.Claim, device string) {
	e.onClaim(c, "PartitionRemade", "Recover", device+" was gone, destroyed by hand or with the driver, and was made again: "+
		"delete the Pods that run with this claim; what they have open was another instance, and may be somebody else's now")
}

// classUnoffered reports a class of which the node does not publish all that it asks for.
// The controller cannot know, since it depends on the node's labels and configuration.
func (e *nodeEvents) classUnoffered(u *class.Unoffered) {
	about := &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PartitionClassKind, Name: u.Class}
	e.record(about, corev1.EventTypeWarning, "ClassNotOffered", "Publish", u.Error())
}

func (e *nodeEvents) onClaim(c journal.Claim, reason, action, note string) {
	claim := &corev1.ObjectReference{
		APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceClaim",
		Namespace: c.Namespace, Name: c.Name, UID: types.UID(c.UID),
	}
	e.recorder.Eventf(claim, e.node, corev1.EventTypeWarning, reason, action, "%s", cut(note, maxNote))
}

// maxNote is what an event's note takes (k8s.io/api/events/v1).
const maxNote = 1024

// record tells of something about the node. Events that differ in their note alone
// would be taken for one and the same, so about says what each is about.
func (e *nodeEvents) record(about *corev1.ObjectReference, kind, reason, action, note string) {
	e.recorder.Eventf(e.node, about, kind, reason, action, "%s", cut(note, maxNote))
}

// cut shortens s to at most limit bytes of whole characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len("…")], "") + "…"
}

type trouble struct {
	device string
	kind   machine.FaultKind
}

func (t trouble) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Device", Name: t.device, FieldPath: string(t.kind)}
}

func troubles(m *machine.Machine) map[trouble]string {
	found := map[trouble]string{}
	for _, f := range m.AllFaults() {
		key, message := trouble{f.Device, f.Kind}, f.Message
		if other := found[key]; other != "" { // two of the administrator's fields name one NIC
			message = other + "; " + message
		}
		found[key] = message
	}
	note := func(at machine.Address, h machine.Health) {
		if !h.OK() {
			found[trouble{at.String(), h.Reason}] = h.Message
		}
	}
	for i := range m.GPUs {
		note(m.GPUs[i].Address, m.GPUs[i].Health)
	}
	for i := range m.NICs {
		note(m.NICs[i].Address, m.NICs[i].Health)
	}
	return found
}
