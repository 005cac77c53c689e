package patiencetest

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Watched is a watch that runs beside a test.
type Watched[Event any] struct {
	Events <-chan Event
	t      testing.TB
	end    func()
}

// Watch runs a watch beside the test, until End or the test's end.
func Watch[Event any](t testing.TB, watch func(ctx context.Context, notify func(Event)) error) *Watched[Event] {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events, ended := make(chan Event, 1024), make(chan error, 1)
	go func() { ended <- watch(ctx, func(e Event) { events <- e }) }()
	w := &Watched[Event]{Events: events, t: t, end: sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the watch ended with %v", err)
			}
		case <-time.After(Limit):
			t.Error("the watch does not end with its context")
		}
	})}
	t.Cleanup(w.End)
	return w
}

// End ends the watch, which must end with its context, and without an error.
func (w *Watched[Event]) End() {
	w.t.Helper()
	w.end()
}

// Await waits for an event that is as wanted, and passes others by. Nothing says that a
// watch has begun: what raises the event is done at once, and again until it is seen. Nil
// raises nothing.
func (w *Watched[Event]) Await(what string, raise func(), is func(Event) bool) Event {
	w.t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	if raise == nil {
		raise = func() {}
	}
	raise()
	for over := time.After(Limit); ; {
		select {
		case e := <-w.Events:
			if is(e) {
				return e
			}
		case <-again.C:
			raise()
		case <-over:
			w.t.Fatalf("the watch does not tell of %s", what)
		}
	}
}
