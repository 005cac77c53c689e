package agent

import (
	"context"
	"errors"
	"sync"
	"time"
)

// gate lets calls in until it is closed, and then waits for those inside.
type gate struct {
	mu     sync.Mutex // guards what follows
	inside int
	left   time.Time // when the last call left
	closed bool
	empty  chan struct{}
}

// answering is how long an answer may take from its handler to the kubelet. The
// plugin helper stops its server hard, and does not say when answers are out.
const answering = 200 * time.Millisecond

var errClosed = errors.New("this dovetail-node is shutting down: try again")

func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errClosed
	}
	g.inside++
	return nil
}

// open returns nil, or why nobody gets in any more.
func (g *gate) open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errClosed
	}
	return nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.left = time.Now()
	if g.closed && g.inside == 0 {
		close(g.empty)
	}
}

// close lets nobody in any more and returns when nobody is inside and answers are
// out, or ctx ends.
func (g *gate) close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed, g.empty = true, make(chan struct{})
		if g.inside == 0 {
			close(g.empty)
		}
	}
	empty := g.empty
	g.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	g.mu.Lock()
	out := time.NewTimer(time.Until(g.left.Add(answering)))
	g.mu.Unlock()
	defer out.Stop()
	select {
	case <-out.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
