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
	// An index means another GPU in the next session.
	thing := fmt.Sprintf("index %d in session %p", index, s)
	if _, known := g.identity(index); !known {
		g.inTime(s, thing, func() { newReader(g, s, index).identify() }) //nolint:errcheck // reading meets the same
	}
	if is, known := g.identity(index); known {
		thing = gpu(is.uuid) // what waits for a change of this GPU, or hangs with it
	}
	r := newReader(g, s, index)
	if _, err := g.inTime(s, thing, r.read); err == nil {
		return r
	}
	r = &reader{gpus: g, name: g.nameOf(index)} // the other is still being written
	r.fault(machine.FaultUnresponsive, "the GPU does not answer: look for Xid errors in the kernel's log, then reset it or reboot the node")
	return r
}

// inTime calls f, which asks the named GPU for something. Where the GPU hangs, f goes
// on and keeps the session; begun says whether f was called at all.
func (g *GPUs) inTime(s *session, thing string, f func()) (begun bool, err error) {
	g.keep(s)
	var started atomic.Bool
	err = g.calls.Do(thing, func() error {
		started.Store(true)
		defer g.release(s)
		f()
		return nil
	})
	if !started.Load() {
		g.release(s)
	}
	return started.Load(), err
}

// keep is acquire for who has the session already.
func (g *GPUs) keep(s *session) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	s.users++
}
