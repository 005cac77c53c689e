// Package patience bounds calls that cannot be interrupted: those into a driver's
// library, which a sick device can hang for ever.
package patience

import (
	"sync"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// Default is far more than a call takes on a device that works, and less than the
// kubelet waits.
const Default = 5 * time.Second

// Calls keeps apart which things hang. The zero value is ready.
type Calls struct {
	// Limit is how long a call may take. Default: Default.
	Limit time.Duration

	mu   sync.Mutex     // guards hung
	hung map[string]int // calls that have not returned in time, by thing
}

// Do calls f, which is about the named thing, and returns what it returns. Where f
// does not return in time, Do does, with failure.Busy, and f goes on; until it
// returns, calls about that thing are refused with the same error and not made.
func (c *Calls) Do(thing string, f func() error) error {
	if c.hangs(thing) {
		return c.silent(thing)
	}
	returned := make(chan error, 1)
	go func() { returned <- f() }()
	limit := time.NewTimer(c.limit())
	defer limit.Stop()
	select {
	case err := <-returned:
		return err
	case <-limit.C:
	}
	c.count(thing, 1)
	go func() {
		<-returned //nolint:errcheck // nobody waits for it any more
		c.count(thing, -1)
	}()
	return c.silent(thing)
}

func (c *Calls) limit() time.Duration {
	if c.Limit == 0 {
		return Default
	}
	return c.Limit
}

func (c *Calls) hangs(thing string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hung[thing] > 0
}

func (c *Calls) count(thing string, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung == nil {
		c.hung = map[string]int{}
	}
	if c.hung[thing] += by; c.hung[thing] == 0 {
		delete(c.hung, thing)
	}
}

func (c *Calls) silent(thing string) error {
	return failure.New(failure.Busy,
		"%s has not answered for %s: look for Xid errors in the kernel's log, then reset the GPU or reboot the node", thing, c.limit())
}
