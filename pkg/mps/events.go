package mps

import (
	"context"
	"slices"
	"sync"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// kept is how many events wait for somebody to watch, or for a watcher that is busy;
// the oldest go first.
const kept = 64

// events gives each event to all who watch, or keeps it for the next one who does.
type events struct {
	mutex    sync.Mutex
	watchers map[*watcher]struct{}
	waiting  []hardware.MPSEvent
}

// watcher is one call of watch.
type watcher struct {
	queue []hardware.MPSEvent
	more  chan struct{} // has an element while queue may have
}

func (w *watcher) add(all ...hardware.MPSEvent) {
	w.queue = newest(append(w.queue, all...))
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func newest(all []hardware.MPSEvent) []hardware.MPSEvent {
	return slices.Clone(all[max(0, len(all)-kept):])
}

func (e *events) emit(event hardware.MPSEvent) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if len(e.watchers) == 0 {
		e.waiting = newest(append(e.waiting, event))
	}
	for w := range e.watchers {
		w.add(event)
	}
}

func (e *events) watch(ctx context.Context, notify func(hardware.MPSEvent)) {
	w := &watcher{more: make(chan struct{}, 1)}
	e.mutex.Lock()
	if e.watchers == nil {
		e.watchers = map[*watcher]struct{}{}
	}
	e.watchers[w] = struct{}{}
	w.add(e.waiting...)
	e.waiting = nil
	e.mutex.Unlock()
	defer func() {
		e.mutex.Lock()
		defer e.mutex.Unlock()
		delete(e.watchers, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.more:
		}
		e.mutex.Lock()
		queue := w.queue
		w.queue = nil
		e.mutex.Unlock()
		for _, event := range queue {
			notify(event)
		}
	}
}
