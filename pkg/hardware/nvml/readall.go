package nvml

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// readAll reads GPUs 0 to count-1 side by side. A GPU that does not answer in time
// is a fault, and delays nobody for longer than that.
func (g *GPUs) readAll(s *session, count int) []*reader {
	results := make([]*reader, count)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = g.readOne(s, i) })
	}
	all.Wait()
	return results
}

func (g *GPUs) readOne(s *session, index int) *reader {
	r := &reader{gpus: g, session: s}
	g.keep(s)
	// An index means another GPU in the next session.
	thing := fmt.Sprintf("the GPU of index %d in session %p", index, s)
	var started atomic.Bool
	err := g.calls.Do(thing, func() error {
		started.Store(true)
		defer g.release(s)
		r.read(index)
		return nil
	})
	if err == nil {
		return r
	}
	if !started.Load() {
		g.release(s)
	}
	r = &reader{gpus: g, name: g.nameOf(index)} // the other is still being written
	r.fault(machine.FaultUnresponsive, "the GPU does not answer: look for Xid errors in the kernel's log, then reset it or reboot the node")
	return r
}

// keep is acquire for who has the session already.
func (g *GPUs) keep(s *session) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	s.users++
}
