package partitionclass

import (
	"slices"
	"strconv"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

// A DeviceClass that came and went before anybody looked has made the scheduler forget the
// name all the same, whether or not a third one has it.
func TestExtendedResourceIsForgotten(t *testing.T) {
	pc, brief := wants(t, ""), dc("brief", 11, nil)
	givenUp := brief.DeepCopy()
	givenUp.Spec.ExtendedResourceName = nil
	relabeled := brief.DeepCopy()
	relabeled.Labels = map[string]string{"a": "b"}
	for name, test := range map[string]struct {
		older  bool
		happen func(w *world, q queue)
		want   []string
		reason string
	}{
		"gone":                 {false, func(w *world, q queue) { w.deviceClasses().Delete(w.Context(), event.DeleteEvent{Object: brief}, q) }, []string{"none", resource}, ReasonApplied},
		"given up":             {false, func(w *world, q queue) { w.deviceClasses().Update(w.Context(), updateOf(brief, givenUp), q) }, []string{"none", resource}, ReasonApplied},
		"gone beside an older": {true, func(w *world, q queue) { w.deviceClasses().Delete(w.Context(), event.DeleteEvent{Object: brief}, q) }, []string{"none", resource}, ReasonContested},
		"changed otherwise":    {false, func(w *world, q queue) { w.deviceClasses().Update(w.Context(), updateOf(brief, relabeled), q) }, nil, ReasonApplied},
		"of another resource":  {false, func(w *world, q queue) { w.deviceClasses().Delete(w.Context(), event.DeleteEvent{Object: givenUp}, q) }, nil, ReasonApplied},
		"the class's own write": {false, func(w *world, q queue) {
			w.deviceClasses().Delete(w.Context(), event.DeleteEvent{Object: dc("small", 10, pc)}, q)
		}, nil, ReasonApplied},
	} {
		t.Run(name, func(t *testing.T) {
			var served []string
			objects := []client.Object{pc.DeepCopy(), dc("small", 10, pc)}
			if test.older {
				objects = append(objects, dc("older", 1, nil))
			}
			w := newWorld(t, noting(&served), objects...)
			if _, err := w.reconcile(); err != nil { // the DeviceClass is as it should be from now on
				t.Fatal(err)
			}
			served = nil
			test.happen(w, &named{})
			for range 2 { // the second changes nothing
				now, err := w.reconcile()
				if err != nil {
					t.Fatal(err)
				}
				w.wantCondition(now, v1alpha1.ConditionExtendedResource, "True", test.reason, "")
			}
			if !slices.Equal(served, test.want) || w.served() != resource {
				t.Errorf("patched to %q, want %q", served, test.want)
			}
		})
	}
}

// Of three that had the name the newest goes, and the next is a class's.
func TestExtendedResourceIsStillContested(t *testing.T) {
	pc, newest := wants(t, ""), dc("newest", 11, nil)
	w := newWorld(t, interceptor.Funcs{}, pc, dc("small", 10, pc), dc("older", 1, nil), newest)
	now, err := w.reconcile()
	if err != nil {
		t.Fatal(err)
	}
	w.wantCondition(now, v1alpha1.ConditionExtendedResource, "False", ReasonTaken, "DeviceClass newest")
	if err := w.Client.Delete(t.Context(), newest); err != nil {
		t.Fatal(err)
	}
	before := w.version()
	for range 2 {
		if now, err = w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.wantCondition(now, v1alpha1.ConditionExtendedResource, "True", ReasonContested, "DeviceClass older")
	}
	if writes := w.version() - before; writes != 2 {
		t.Errorf("the DeviceClass is written %d times: the scheduler has forgotten its extended resource", writes)
	}
}

// version of the DeviceClass, which the fake counts.
func (w *world) version() int {
	w.Helper()
	got := &resourceapi.DeviceClass{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Name: "small"}, got); err != nil {
		w.Fatal(err)
	}
	n, err := strconv.Atoi(got.ResourceVersion)
	if err != nil {
		w.Fatal(err)
	}
	return n
}
