package agent

import (
	"context"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourceapply "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/claim"
)

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

// report is the last that is known of a claim: what there is to say of each of its
// devices, in the order of own.
type report struct {
	claim *resourceapi.ResourceClaim
	told  []told
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
func (w *statusWriter) Report(c *resourceapi.ResourceClaim, devices []claim.Device, err error) (news bool) {
	r := report{claim: c}
	known := true
	for _, result := range own(c) {
		t := toldOf(w.node, c, result, devices, err)
		known = known && says(c, result, t)
		r.told = append(r.told, t)
	}
	if known {
		w.Forget(c.UID)
		return false
	}
	w.mu.Lock()
	w.pending[c.UID] = r
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
	for i, result := range own(r.claim) {
		device := resourceapply.AllocatedDeviceStatus().
			WithDriver(result.Driver).WithPool(result.Pool).WithDevice(result.Device)
		for _, condition := range r.told[i].conditions {
			device.WithConditions(applied(r.claim, result, condition))
		}
		if n := r.told[i].network; n != nil {
			device.WithNetworkData(resourceapply.NetworkDeviceData().
				WithInterfaceName(n.InterfaceName).WithHardwareAddress(n.HardwareAddress).WithIPs(n.IPs...))
		}
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
