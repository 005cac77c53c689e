package classwatch

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

// source is an API server for one kind of object.
type source struct {
	mu     sync.Mutex // guards what follows
	list   runtime.Object
	err    error // instead of the list
	tries  int
	events *watch.RaceFreeFakeWatcher
}

func (s *source) List(metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.err != nil {
		return nil, s.err
	}
	return s.list.DeepCopyObject(), nil
}

func (s *source) Watch(metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = watch.NewRaceFreeFake()
	return s.events, nil
}

// fails has lists end in an error from now on, or no longer.
func (s *source) fails(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// ends the watch, after which there is another list.
func (s *source) ends(list runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if list != nil {
		s.list = list
	}
	s.events.Stop()
}

// watch is the one that is open.
func (s *source) watch() *watch.RaceFreeFakeWatcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events
}

func (s *source) IsWatchListSemanticsUnSupported() bool { return true }

func classOf(name, profile string) *v1alpha1.PartitionClass {
	return &v1alpha1.PartitionClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"},
		Spec:       v1alpha1.PartitionClassSpec{Shape: v1alpha1.Shape{MIG: &v1alpha1.MIGShape{Profile: profile}}},
	}
}

func nodeWith(labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", ResourceVersion: "1", Labels: labels}}
}

// watched is a Watch of two sources.
type watched struct {
	*Watch
	classes, node source
	changes       atomic.Int64
}

// begin follows in a bubble of synctest, until the test ends.
func begin(t *testing.T, prepare func(w *watched)) *watched {
	t.Helper()
	w := &watched{
		classes: source{list: &v1alpha1.PartitionClassList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []v1alpha1.PartitionClass{*classOf("b", "1g.10gb")}}},
		node:    source{list: &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Node{*nodeWith(map[string]string{"pool": "a"})}}},
	}
	if prepare != nil {
		prepare(w)
	}
	w.Watch = New(&w.classes, &w.node, func() { w.changes.Add(1) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { w.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	return w
}

// after lets time pass, of which a bubble has as much as one likes.
func (w *watched) after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// knows compares names of classes, and the label "pool" of the node.
func (w *watched) knows(t *testing.T, pool string, classes ...string) {
	t.Helper()
	known, ok := w.Known()
	if !ok {
		t.Fatal("nothing is known")
	}
	var names []string
	for _, c := range known.Classes {
		names = append(names, c.Name+" "+c.Spec.Shape.MIG.Profile)
	}
	if len(names) != len(classes) || known.NodeLabels["pool"] != pool {
		t.Fatalf("known: %q, labels %v", names, known.NodeLabels)
	}
	for i := range names {
		if names[i] != classes[i] {
			t.Errorf("known: %q, want %q", names, classes)
		}
	}
}

// A change is what a node publishes otherwise for; a status, which comes with each claim,
// or a node's heartbeat, is none.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, nil)
		w.knows(t, "a", "b 1g.10gb")
		if w.changes.Load() != 2 {
			t.Errorf("%d changes at the beginning", w.changes.Load())
		}
		step := func(changes int, what func()) {
			t.Helper()
			before := w.changes.Load()
			what()
			synctest.Wait()
			if got := int(w.changes.Load() - before); got != changes {
				t.Errorf("%d changes, want %d", got, changes)
			}
		}
		status := classOf("b", "1g.10gb")
		status.Status.Allocated = 7
		status.Labels = map[string]string{"a": "b"}
		step(0, func() { w.classes.watch().Modify(status) })
		heartbeat := nodeWith(map[string]string{"pool": "a"})
		heartbeat.Status.Phase = corev1.NodeRunning
		step(0, func() { w.node.watch().Modify(heartbeat) })

		step(1, func() { w.classes.watch().Add(classOf("a", "2g.20gb")) })
		w.knows(t, "a", "a 2g.20gb", "b 1g.10gb")
		step(1, func() { w.classes.watch().Modify(classOf("b", "3g.40gb")) })
		step(1, func() { w.node.watch().Modify(nodeWith(map[string]string{"pool": "b"})) })
		step(1, func() { w.classes.watch().Delete(classOf("a", "2g.20gb")) })
		w.knows(t, "b", "b 3g.40gb")

		step(0, func() { // it is read anew, and the same
			w.classes.ends(&v1alpha1.PartitionClassList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []v1alpha1.PartitionClass{*classOf("b", "3g.40gb")}})
			w.after(2 * pauseMost)
		})
		w.knows(t, "b", "b 3g.40gb")
	})
}

var (
	noSuchKind = apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{Resource: "partitionclasses"}, "", "the server could not find the requested resource", 0, true)
	forbidden  = apierrors.NewForbidden(schema.GroupResource{Resource: "partitionclasses"}, "", errors.New("no"))
	broken     = apierrors.NewInternalError(errors.New("conversion failed"))
	refused    = &url.Error{Op: "Get", URL: "https://api", Err: errors.New("connection refused")}
)

// Without classes, or without leave to read them, a node goes on as without; it asks
// ever more seldom, and notices when there are some.
func TestNoClasses(t *testing.T) {
	for name, err := range map[string]error{"no such kind": noSuchKind, "forbidden": forbidden} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, func(w *watched) { w.classes.fails(err) })
				w.knows(t, "a")
				w.after(time.Hour)
				w.knows(t, "a")
				w.classes.mu.Lock()
				tries := w.classes.tries
				w.classes.mu.Unlock()
				if tries > 80 || tries < 50 || w.changes.Load() != 2 {
					t.Errorf("%d tries in an hour, %d changes", tries, w.changes.Load())
				}
				w.classes.fails(nil)
				w.after(2 * pauseMost)
				w.knows(t, "a", "b 1g.10gb")
			})
		})
	}
}

// What is known stays known, unless there is no such kind any more.
func TestLater(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"no such kind": {noSuchKind, nil}, "forbidden": {forbidden, []string{"b 1g.10gb"}},
		"broken": {broken, []string{"b 1g.10gb"}}, "unreachable": {refused, []string{"b 1g.10gb"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := begin(t, nil)
				w.classes.fails(test.err)
				w.classes.ends(nil)
				w.after(time.Hour)
				w.knows(t, "a", test.want...)
				w.classes.fails(nil)
				w.after(2 * pauseMost)
				w.knows(t, "a", "b 1g.10gb")
			})
		})
	}
}

// A server that cannot be reached takes no slices either: it is waited for. One that
// answers, and never well, is not.
func TestFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, func(w *watched) { w.node.fails(refused) })
		w.after(time.Hour)
		if _, ok := w.Known(); ok {
			t.Error("known without a server")
		}
		w.node.fails(nil)
		w.after(2 * pauseMost)
		w.knows(t, "a", "b 1g.10gb")
	})
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, func(w *watched) { w.classes.fails(broken) })
		if _, ok := w.Known(); ok {
			t.Error("known at once")
		}
		w.after(pauseMost)
		w.knows(t, "a")
	})
}
