package partitionclass

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// recorder also notes what events are about besides the class.
type recorder struct {
	*events.FakeRecorder
	related []string
}

func (r *recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	name := "nothing"
	if ref, ok := related.(*corev1.ObjectReference); ok && ref != nil {
		name = ref.Kind + " " + ref.Name
	}
	r.related = append(r.related, name)
	r.FakeRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
}

// Who has the name instead changes: a second event is not taken for the first again.
func TestEventsOfRivals(t *testing.T) {
	told := &recorder{FakeRecorder: events.NewFakeRecorder(10)}
	w := newWorld(t, interceptor.Funcs{}, wants(t, ""))
	w.Events = told
	look := func() {
		t.Helper()
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	theirs := []*resourceapi.DeviceClass{dc("a", 11, nil), dc("b", 12, nil)}
	look()
	for _, d := range theirs {
		if err := w.Client.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		look()
		look()
	}
	for _, d := range theirs {
		if err := w.Client.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if err := w.Client.Create(t.Context(), other(wants(t, ", published: false"), "z", 1)); err != nil {
		t.Fatal(err)
	}
	look()
	if want := []string{"DeviceClass a", "DeviceClass b", "nothing"}; !slices.Equal(told.related, want) {
		t.Errorf("events about %q, want %q", told.related, want)
	}
}
