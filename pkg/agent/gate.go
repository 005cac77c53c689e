package agent

import (
	"context"
	"errors"
	"sync"
)

// gate lets calls in until it is closed, and then waits for those inside.
type gate struct {
	mu     sync.Mutex // guards what follows
	inside int
	closed bool
	empty  chan struct{}
}

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

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.closed && g.inside == 0 {
		close(g.empty)
	}
}

// close lets nobody in any more and returns when nobody is inside, or ctx ends.
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
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
