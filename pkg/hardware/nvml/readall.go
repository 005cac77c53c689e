package nvml

import (
	"context"
	"fmt"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// defaultPatience is far more than a GPU needs that works, and less than what
// the kubelet waits for a health report.
const defaultPatience = 5 * time.Second

// readAll reads GPUs 0 to count-1 side by side. A GPU that does not answer in time
// is a fault, and delays nobody: its call goes on, since NVML cannot interrupt it,
// and until it returns the GPU is not asked again.
func (g *GPUs) readAll(ctx context.Context, s *session, count int) []*reader {
	type answer struct {
		index int
		*reader
	}
	results := make([]*reader, count)
	answers := make(chan answer, count)
	asked := 0
	for i := range results {
		if !g.beginReading(s, i) {
			continue
		}
		asked++
		go func() {
			defer g.endReading(s, i)
			r := &reader{gpus: g, session: s}
			r.read(i)
			answers <- answer{i, r}
		}()
	}
	patience, cancel := context.WithTimeout(ctx, g.options.patience())
	defer cancel()
	for ; asked > 0 && patience.Err() == nil; asked-- {
		select {
		case a := <-answers:
			results[a.index] = a.reader
		case <-patience.Done():
		}
	}
	for i, r := range results {
		if r == nil {
			results[i] = g.silent(i)
		}
	}
	return results
}

func (o Options) patience() time.Duration {
	if o.Patience == 0 {
		return defaultPatience
	}
	return o.Patience
}

// silent is a GPU that has not answered yet.
func (g *GPUs) silent(index int) *reader {
	r := &reader{gpus: g, name: g.nameOf(index)}
	r.fault(machine.FaultUnresponsive, fmt.Sprintf(
		"the GPU has not answered for %s: look for Xid errors in the kernel's log, then reset it or reboot the node", g.options.patience()))
	return r
}

// beginReading keeps the session for a reader, unless the GPU is being read.
func (g *GPUs) beginReading(s *session, index int) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.reading[index] {
		return false
	}
	g.reading[index] = true
	s.users++
	return true
}

func (g *GPUs) endReading(s *session, index int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	delete(g.reading, index)
	s.users--
	s.endLocked()
}
