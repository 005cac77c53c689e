package partitionclass

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

// A class that an earlier version took says truly what claims have of it.
func TestInvalidClassInUse(t *testing.T) {
	pc := partitionClass(t, `{shape: {gpu: {}}, hardware: {nodeSelector: {matchExpressions: [{key: a, operator: Has}]}}}`)
	pc.Finalizers = []string{Finalizer}
	w := newWorld(t, interceptor.Funcs{}, pc)
	w.claim("1")
	if err := w.Client.Delete(w.Context(), pc); err != nil {
		t.Fatal(err)
	}
	pc, err := w.reconcile()
	if err != nil || pc.Status.Allocated != 1 {
		t.Errorf("error %v, %+v", err, pc.Status)
	}
	w.wantCondition(pc, v1alpha1.ConditionReady, "False", ReasonInvalid, "nodeSelector")
	w.wantCondition(pc, v1alpha1.ConditionDeleting, "True", ReasonInUse, "the last of them")

	// The end of the claim is news of it, though it was never counted, and it goes.
	w.Usage.DeleteClaim(&resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
	var q delayed
	if w.later(&q); len(q.after) != 1 {
		t.Errorf("%d classes are looked at when the claim ends", len(q.after))
	}
	if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "small"}}); err != nil {
		t.Error(err)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Name: "small"}, pc); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want that the class is gone", err)
	}
	if classes := w.Usage.Classes(); len(classes) != 0 {
		t.Errorf("there are still %q", classes)
	}
}

// A class that is deleted while claims have devices says until when it stays, and whether
// it gives out more.
func TestDeletedInUse(t *testing.T) {
	for spec, says := range map[string]string{
		`{shape: {gpu: {}}}`:                   "Set published to false to give out no more.",
		`{shape: {gpu: {}}, published: false}`: "It is retired (published: false), and gives out no more.",
	} {
		pc := partitionClass(t, spec)
		pc.Finalizers = []string{Finalizer}
		w := newWorld(t, interceptor.Funcs{}, pc)
		w.claim("1")
		if err := w.Client.Delete(w.Context(), pc); err != nil {
			t.Fatal(err)
		}
		now, err := w.reconcile()
		if err != nil {
			t.Fatal(err)
		}
		w.wantCondition(now, v1alpha1.ConditionDeleting, "True", ReasonInUse, "it goes with the last of them. "+says)
	}
}

// kubectl replace, with a file that knows of no finalizer, takes it away.
func TestFinalizerIsPutBack(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, partitionClass(t, `{shape: {gpu: {}}}`))
	before, err := w.reconcile()
	if err != nil || len(before.Finalizers) != 1 {
		t.Fatalf("error %v, finalizers %v", err, before.Finalizers)
	}
	without := before.DeepCopy()
	without.Finalizers = nil
	if err := w.Client.Update(w.Context(), without); err != nil {
		t.Fatal(err)
	}
	if !lostFinalizer(event.UpdateEvent{ObjectOld: before, ObjectNew: without}) {
		t.Error("it is no news")
	}
	after, err := w.reconcile()
	if err != nil || len(after.Finalizers) != 1 {
		t.Errorf("error %v, finalizers %v", err, after.Finalizers)
	}
	if lostFinalizer(event.UpdateEvent{ObjectOld: without, ObjectNew: after}) {
		t.Error("its own write is news")
	}
}
