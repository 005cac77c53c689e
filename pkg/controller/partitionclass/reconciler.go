// Package partitionclass keeps, for each PartitionClass, its DeviceClass and its status.
package partitionclass

import (
	"context"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/controller/usage"
)

// Finalizer keeps a PartitionClass until no claim has a device through it.
const Finalizer = "dovetail.dev/in-use"

// Manager is who writes, as it stands in managed fields and labels.
const Manager = "dovetail-controller"

// Delay is how long changes of devices and claims are gathered before the statuses of
// classes are written.
const Delay = time.Second

// delayForNode is how much longer it is for each node with devices: all of them watch the
// classes, and are sent every status that is written. So a class whose numbers change all
// the time costs the API server 200 messages a second, however many nodes there are.
const delayForNode = 5 * time.Millisecond

// Reconciler of PartitionClasses.
type Reconciler struct {
	// Client reads from the caches.
	Client client.Client
	// Usage is told of every slice, claim and rule that taints devices, and counts them.
	Usage *usage.Store
	// Events tells of extended resources that a class cannot have.
	Events events.EventRecorder
	// Metrics of the classes.
	Metrics *Metrics
	// Delay in place of the package's, where there are few nodes.
	Delay time.Duration

	forgotten forgotten
}

// SetupWithManager starts it with the manager. Where it does not lead, it already
// listens, so that it can lead at once.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("partitionclass").
		For(&v1alpha1.PartitionClass{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: lostFinalizer}, predicate.Funcs{UpdateFunc: seenOtherwise},
		))).
		Watches(&v1alpha1.PartitionClass{}, r.rivals()).
		Watches(&resourceapi.DeviceClass{}, r.deviceClasses()).
		Watches(&resourceapi.ResourceSlice{}, r.slices()).
		Watches(&resourceapi.ResourceClaim{}, r.claims()).
		Watches(&resourceapi.DeviceTaintRule{}, r.taintRules()).
		WithOptions(controller.Options{
			EnableWarmup:       ptr.To(true),
			SkipNameValidation: ptr.To(true), // for tests, which have several managers
		}).
		Complete(r)
}

// Reconcile one class.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pc := &v1alpha1.PartitionClass{}
	switch err := r.Client.Get(ctx, request.NamespacedName, pc); {
	case apierrors.IsNotFound(err):
		r.forget(request.Name)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("read PartitionClass %s: %w", request.Name, err)
	}
	if !pc.DeletionTimestamp.IsZero() && (!controllerutil.ContainsFinalizer(pc, Finalizer) || r.Usage.Allocated(pc.Name) == 0) {
		return ctrl.Result{}, r.remove(ctx, pc)
	}

	r.Usage.Follow(pc.Name) // also one that is not valid goes with the last claim
	now := newReport(pc)
	compiled, err := class.Compile(pc)
	if err != nil {
		now.invalid(err, r.Usage.Allocated(pc.Name))
		return ctrl.Result{}, r.write(ctx, pc, now)
	}
	spec := compiled.DeviceClass()
	if err := r.serve(ctx, pc, &spec, now); err != nil {
		return ctrl.Result{}, err
	}
	owned, failed := r.ensure(ctx, pc, &spec, now)
	counts, err := r.Usage.Count(ctx, pc.Name, &spec)
	if !owned {
		// What is had, and can be had, by this name is so through somebody else's class.
		counts.Allocated, counts.Free = 0, 0
	}
	now.counted(compiled, counts, err)
	if err := r.write(ctx, pc, now); err != nil {
		return ctrl.Result{}, err
	}
	r.announce(pc, now)
	return ctrl.Result{}, failed
}

// remove lets a class go that nobody uses.
func (r *Reconciler) remove(ctx context.Context, pc *v1alpha1.PartitionClass) error {
	defer r.forget(pc.Name)
	if !controllerutil.ContainsFinalizer(pc, Finalizer) {
		return nil
	}
	if err := r.deleteDeviceClass(ctx, pc); err != nil {
		return err
	}
	before := pc.DeepCopy()
	controllerutil.RemoveFinalizer(pc, Finalizer)
	if err := r.Client.Patch(ctx, pc, lockedPatch(before), client.FieldOwner(Manager)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release PartitionClass %s: %w", pc.Name, err)
	}
	return nil
}

func (r *Reconciler) forget(name string) {
	r.Usage.Forget(name)
	r.forgotten.take(name)
	r.Metrics.forget(name)
}

// lockedPatch is what an object differs from before, for the version that was read.
func lockedPatch(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
