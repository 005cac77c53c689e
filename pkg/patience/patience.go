// Package patience bounds calls that cannot be interrupted: those into a driver's
// library or the kernel, which a sick device can hang for ever.
package patience

import (
	"cmp"
	"slices"
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
	// Cure ends the error's message. Default: what to do about a GPU.
	Cure string

	mu    sync.Mutex         // guards calls, and what they point at
	calls map[string][]*call // those that have not returned, by thing
}

// call is one that has not returned.
type call struct {
	deadline time.Time
	slow     bool // others may have to wait for it
	hung     bool // nobody waits for it any more
}

// Do calls f, which is about the named thing, and returns what it returns. Where f
// does not return in time, Do does, with failure.Busy, and f goes on; until it
// returns, calls about that thing are refused with the same error and not made.
func (c *Calls) Do(thing string, f func() error) error { return c.Within(c.limit(), thing, f) }

// Within is Do with a longer limit. While f has time left, no other call about the
// thing is given up, since it may be f that it waits for, and when f returns they have
// their time anew.
func (c *Calls) Within(limit time.Duration, thing string, f func() error) error {
	this := c.begin(thing, limit)
	if this == nil {
		return c.silent(thing, c.limit())
	}
	returned := make(chan error, 1)
	go func() {
		err := f()
		c.end(thing, this)
		returned <- err
	}()
	for left := limit; left > 0; left = c.left(thing, this) {
		select {
		case err := <-returned:
			return err
		case <-time.After(left):
		}
	}
	if !this.hung { // it has returned just now
		return <-returned
	}
	return c.silent(thing, limit)
}

func (c *Calls) limit() time.Duration {
	if c.Limit == 0 {
		return Default
	}
	return c.Limit
}

// begin notes a call, or returns nil where another one hangs.
func (c *Calls) begin(thing string, limit time.Duration) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.calls[thing], func(other *call) bool { return other.hung }) {
		return nil
	}
	this := &call{deadline: time.Now().Add(limit), slow: limit > c.limit()}
	if c.calls == nil {
		c.calls = map[string][]*call{}
	}
	c.calls[thing] = append(c.calls[thing], this)
	return this
}

func (c *Calls) end(thing string, this *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	others := slices.DeleteFunc(c.calls[thing], func(other *call) bool { return other == this })
	if len(others) == 0 {
		delete(c.calls, thing)
		return
	}
	c.calls[thing] = others
	for _, other := range others {
		if anew := time.Now().Add(c.limit()); this.slow && other.deadline.Before(anew) {
			other.deadline = anew
		}
	}
}

// left is how long a call is still waited for: as long as any about the thing has
// time. Where that is over and it has not returned, it hangs.
func (c *Calls) left(thing string, this *call) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls[thing]
	if !slices.Contains(calls, this) {
		return 0
	}
	var left time.Duration
	for _, other := range calls {
		left = max(left, time.Until(other.deadline))
	}
	this.hung = left <= 0
	return left
}

// Changing says whether a call of Within's about the thing has time left, for which others
// may have to wait.
func (c *Calls) Changing(thing string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.calls[thing], func(other *call) bool { return other.slow && !other.hung })
}

func (c *Calls) silent(thing string, limit time.Duration) error {
	return failure.New(failure.Busy, "%s has not answered for %s: %s", thing, limit,
		cmp.Or(c.Cure, "look for Xid errors in the kernel's log, then reset the GPU or reboot the node"))
}
