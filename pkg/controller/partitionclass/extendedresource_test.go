package partitionclass

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

const resource = "example.com/gpu"

// second of a minute.
func second(n int) metav1.Time { return metav1.Unix(int64(1_700_000_000+n), 0) }

// wants is class small, made at second 10.
func wants(t *testing.T, more string) *v1alpha1.PartitionClass {
	pc := partitionClass(t, `{shape: {gpu: {}}, extendedResourceName: `+resource+more+`}`)
	pc.CreationTimestamp = second(10)
	return pc
}

func other(pc *v1alpha1.PartitionClass, name string, made int) *v1alpha1.PartitionClass {
	o := pc.DeepCopy()
	o.Name, o.UID, o.CreationTimestamp = name, types.UID(name), second(made)
	return o
}

// dc serves the resource; it is a PartitionClass's unless that is nil.
func dc(name string, made int, of *v1alpha1.PartitionClass) *resourceapi.DeviceClass {
	d := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: second(made)}}
	d.Spec.ExtendedResourceName = ptr.To(resource)
	if of != nil {
		mark(d, of)
	}
	return d
}

func (w *world) served() string {
	w.Helper()
	got := &resourceapi.DeviceClass{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Name: "small"}, got); err != nil {
		w.Fatal(err)
	}
	return ptr.Deref(got.Spec.ExtendedResourceName, "")
}

// Who has a name keeps it, and who comes later is told.
func TestExtendedResource(t *testing.T) {
	plain, retiredOne := wants(t, ""), wants(t, ", published: false")
	invalid := other(plain, "earlier", 1)
	invalid.Spec.Hardware.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Has"}}}
	shadowed := other(plain, "earlier", 1)
	foreign := dc("earlier", 1, nil)
	foreign.Spec.ExtendedResourceName = nil
	for name, test := range map[string]struct {
		class          *v1alpha1.PartitionClass
		others         []client.Object
		serves         bool
		status, reason string
		message        string
	}{
		"alone":                         {plain, nil, true, "True", ReasonApplied, resource},
		"a DeviceClass has it":          {plain, []client.Object{dc("a", 1, nil)}, false, "False", ReasonTaken, "DeviceClass a serves"},
		"an earlier class wants it":     {plain, []client.Object{other(plain, "z", 1)}, false, "False", ReasonTaken, "PartitionClass z serves"},
		"a later class wants it":        {plain, []client.Object{other(plain, "a", 11)}, true, "True", ReasonApplied, ""},
		"one of the same second":        {plain, []client.Object{other(plain, "a", 10)}, false, "False", ReasonTaken, "PartitionClass a serves"},
		"an earlier one is retired":     {plain, []client.Object{other(retiredOne, "a", 1)}, true, "True", ReasonApplied, ""},
		"an earlier one is invalid":     {plain, []client.Object{invalid}, true, "True", ReasonApplied, ""},
		"an earlier one is shadowed":    {plain, []client.Object{shadowed, foreign}, true, "True", ReasonApplied, ""},
		"it has it, an earlier wants":   {plain, []client.Object{dc("small", 10, plain), other(plain, "a", 1)}, true, "True", ReasonApplied, ""},
		"it has it, and is retired":     {retiredOne, []client.Object{dc("small", 10, plain), other(plain, "z", 11)}, false, "False", ReasonTaken, "PartitionClass z serves"},
		"both have it, it is newer":     {plain, []client.Object{dc("small", 10, plain), dc("a", 1, nil)}, true, "True", ReasonContested, "DeviceClass a serves"},
		"both have it, it is older":     {plain, []client.Object{dc("small", 10, plain), dc("z", 11, nil)}, true, "False", ReasonTaken, "DeviceClass z serves"},
		"both have it, of one second":   {plain, []client.Object{dc("small", 10, plain), dc("z", 10, nil), dc("y", 9, nil)}, true, "True", ReasonContested, "DeviceClass z serves"},
		"another resource is of no use": {plain, []client.Object{&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, true, "True", ReasonApplied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{}, append(test.others, test.class.DeepCopy())...)
			pc, err := w.reconcile()
			if err != nil {
				t.Fatal(err)
			}
			w.wantCondition(pc, v1alpha1.ConditionExtendedResource, test.status, test.reason, test.message)
			w.wantCondition(pc, v1alpha1.ConditionReady, "True", ReasonApplied, "")
			if serves := w.served() == resource; serves != test.serves {
				t.Errorf("the DeviceClass serves %q", w.served())
			}
			told := w.Events.(*events.FakeRecorder).Events
			if tell := test.reason != ReasonApplied; tell != (len(told) == 1) || tell && !strings.HasPrefix(<-told, "Warning ExtendedResource"+test.reason) {
				t.Errorf("%d events", len(told))
			}
		})
	}
}

// noting adds the extended resource, or "none", of each DeviceClass that is written.
func noting(served *[]string) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
		if d, ok := o.(*resourceapi.DeviceClass); ok {
			*served = append(*served, ptr.Deref(d.Spec.ExtendedResourceName, "none"))
		}
		return c.Patch(ctx, o, p, options...)
	}}
}

// When the other one goes, the class is given the name, or the scheduler is shown it anew.
func TestExtendedResourceIsFree(t *testing.T) {
	for name, has := range map[string]bool{"it had it not": false, "it had it, too": true} {
		t.Run(name, func(t *testing.T) {
			var served []string
			pc, others := wants(t, ""), dc("z", 11, nil)
			objects := []client.Object{pc, others}
			if has {
				objects = append(objects, dc("small", 10, pc))
			}
			w := newWorld(t, noting(&served), objects...)
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			if err := w.Client.Delete(t.Context(), others); err != nil {
				t.Fatal(err)
			}
			served = nil
			for range 2 { // the second changes nothing
				now, err := w.reconcile()
				if err != nil {
					t.Fatal(err)
				}
				w.wantCondition(now, v1alpha1.ConditionExtendedResource, "True", ReasonApplied, resource)
			}
			want := []string{resource}
			if has {
				want = []string{"none", resource}
			}
			if !slices.Equal(served, want) || w.served() != resource {
				t.Errorf("patched to %q, want %q", served, want)
			}
			told := w.Events.(*events.FakeRecorder).Events
			if len(told) != 2 {
				t.Fatalf("%d events", len(told))
			}
			<-told
			if last := <-told; !strings.HasPrefix(last, "Normal ExtendedResourceServed") {
				t.Errorf("event %q", last)
			}
		})
	}
}

func TestNoExtendedResource(t *testing.T) {
	pc := partitionClass(t, `{shape: {gpu: {}}}`)
	meta.SetStatusCondition(&pc.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionExtendedResource, Status: "False", Reason: ReasonTaken})
	w := newWorld(t, interceptor.Funcs{}, pc)
	now, err := w.reconcile()
	if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionExtendedResource); err != nil || c != nil {
		t.Errorf("error %v, %+v", err, c)
	}
}

// Classes that want a name are looked at when somebody takes it or gives it up.
func TestRivalsAreLookedAt(t *testing.T) {
	pc := wants(t, "")
	w := newWorld(t, interceptor.Funcs{}, pc, other(pc, "b", 1), other(partitionClass(t, `{shape: {gpu: {}}}`), "c", 1))
	var q named
	none := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
	w.deviceClasses().Update(t.Context(), updateOf(dc("d", 1, nil), none), &q)
	changed := pc.DeepCopy()
	changed.Generation++
	changed.Spec.ExtendedResourceName = "example.com/another"
	w.rivals().Update(t.Context(), updateOf(pc, changed), &q)
	w.rivals().Update(t.Context(), updateOf(pc, pc), &q)
	otherwise := pc.DeepCopy() // with a definition that has no such field
	otherwise.Spec.ExtendedResourceName = ""
	w.rivals().Update(t.Context(), updateOf(otherwise, pc), &q)
	if want := "d b small b small b small"; strings.Join(q.names, " ") != want {
		t.Errorf("looked at %v, want %s", q.names, want)
	}
}

// named are the classes that are to be looked at.
type named struct {
	queue
	names []string
}

func (n *named) AddAfter(r ctrl.Request, _ time.Duration) { n.names = append(n.names, r.Name) }

func updateOf(before, now client.Object) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: before, ObjectNew: now}
}
