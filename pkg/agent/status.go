package agent

import (
	"context"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	resourceapply "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// conditionReady of a device in ResourceClaim.status.devices.
const conditionReady = "Ready"

// maxMessage is what a condition's message takes (apimachinery, Condition).
const maxMessage = 32768

// statusDelay lets a wave of Pods pass: a status is a write to the API server, which
// would hold up the look-ups of the claims that come next.
const statusDelay = 500 * time.Millisecond

// statusTries bounds how often one status is tried: it informs, nothing more.
const statusTries = 8

// statusWriter tells people in the claim's status how its devices are. It works
// behind the kubelet's back: no Pod waits for it.
type statusWriter struct {
	kube  kubernetes.Interface
	node  string
	delay time.Duration
	queue workqueue.TypedRateLimitingInterface[types.UID]

	mu      sync.Mutex // guards pending
	pending map[types.UID]report
}

// report is the last that is known of a claim.
type report struct {
	claim     *resourceapi.ResourceClaim
	condition metav1.Condition
}

func newStatusWriter(kube kubernetes.Interface, node string) *statusWriter {
	return &statusWriter{
		kube: kube, node: node, delay: statusDelay,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](100*time.Millisecond, time.Minute)),
		pending: map[types.UID]report{},
	}
}

// Report takes note of how a preparation ended, and says whether that is news. It
// does not wait. What the claim's status says already is not written again.
func (w *statusWriter) Report(c *resourceapi.ResourceClaim, err error) (news bool) {
	condition := metav1.Condition{
		Type: conditionReady, Status: metav1.ConditionTrue, Reason: "Prepared",
		Message: "prepared on node " + w.node, ObservedGeneration: c.Generation,
	}
	if err != nil {
		condition.Status, condition.Reason = metav1.ConditionFalse, "PrepareFailed"
		condition.Message = cut(err.Error(), maxMessage)
	}
	if saysSo(c, condition) {
		w.Forget(c.UID)
		return false
	}
	w.mu.Lock()
	w.pending[c.UID] = report{claim: c, condition: condition}
	w.mu.Unlock()
	w.queue.AddAfter(c.UID, w.delay)
	return true
}

// Forget drops what is not yet written for a claim.
func (w *statusWriter) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, uid)
}

// run writes until ctx ends.
func (w *statusWriter) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer stop()
	for {
		uid, shutdown := w.queue.Get()
		if shutdown {
			return
		}
		w.process(ctx, uid)
		w.queue.Done(uid)
	}
}

func (w *statusWriter) process(ctx context.Context, uid types.UID) {
	w.mu.Lock()
	r, ok := w.pending[uid]
	w.mu.Unlock()
	if !ok {
		w.queue.Forget(uid)
		return
	}
	err := w.write(ctx, r)
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err):
		// Gone, replaced or deallocated meanwhile: nobody is interested.
	case w.queue.NumRequeues(uid) < statusTries:
		w.queue.AddRateLimited(uid)
		return
	default:
		klog.FromContext(ctx).Error(err, "Cannot write the claim's status", "claim", klog.KObj(r.claim))
	}
	w.queue.Forget(uid)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending[uid].claim == r.claim {
		delete(w.pending, uid)
	}
}

func (w *statusWriter) write(ctx context.Context, r report) error {
	status := resourceapply.ResourceClaimStatus()
	for _, result := range own(r.claim) {
		condition := r.condition
		condition.LastTransitionTime = transition(r.claim, result, condition.Status)
		device := resourceapply.AllocatedDeviceStatus().
			WithDriver(result.Driver).WithPool(result.Pool).WithDevice(result.Device).
			WithConditions(applied(condition))
		if result.ShareID != nil {
			device.WithShareID(string(*result.ShareID))
		}
		status.WithDevices(device)
	}
	_, err := w.kube.ResourceV1().ResourceClaims(r.claim.Namespace).ApplyStatus(ctx,
		resourceapply.ResourceClaim(r.claim.Name, r.claim.Namespace).WithUID(r.claim.UID).WithStatus(status),
		metav1.ApplyOptions{FieldManager: catalog.DriverName, Force: true})
	return err
}

// own returns the claim's devices of this driver, each once: the API takes one
// status a device, also where two requests with admin access share it.
func own(c *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	if c.Status.Allocation == nil {
		return nil
	}
	type key struct{ pool, device, share string }
	seen := map[key]bool{}
	var results []resourceapi.DeviceRequestAllocationResult
	for _, r := range c.Status.Allocation.Devices.Results {
		k := key{pool: r.Pool, device: r.Device}
		if r.ShareID != nil {
			k.share = string(*r.ShareID)
		}
		if r.Driver == catalog.DriverName && !seen[k] {
			seen[k] = true
			results = append(results, r)
		}
	}
	return results
}

// saysSo says whether all devices of the claim have that condition already.
func saysSo(c *resourceapi.ResourceClaim, want metav1.Condition) bool {
	for _, result := range own(c) {
		has := conditionOf(c, result)
		if has == nil || has.Status != want.Status || has.Reason != want.Reason || has.Message != want.Message {
			return false
		}
	}
	return true
}

func transition(c *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult, status metav1.ConditionStatus) metav1.Time {
	if has := conditionOf(c, result); has != nil && has.Status == status {
		return has.LastTransitionTime
	}
	return metav1.Now()
}

func conditionOf(c *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult) *metav1.Condition {
	for i := range c.Status.Devices {
		d := &c.Status.Devices[i]
		if d.Driver == result.Driver && d.Pool == result.Pool && d.Device == result.Device &&
			ptr.Deref(d.ShareID, "") == string(ptr.Deref(result.ShareID, "")) {
			return meta.FindStatusCondition(d.Conditions, conditionReady)
		}
	}
	return nil
}

func applied(c metav1.Condition) *metaapply.ConditionApplyConfiguration {
	return metaapply.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).
		WithMessage(c.Message).WithLastTransitionTime(c.LastTransitionTime).WithObservedGeneration(c.ObservedGeneration)
}
