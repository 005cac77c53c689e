package patience

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

func TestDo(t *testing.T) {
	c := Calls{Limit: time.Minute}
	wrong := errors.New("wrong")
	if err := c.Do("GPU a", func() error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
	c.Limit = time.Millisecond
	let := make(chan struct{})
	if err := c.Do("GPU a", func() error { <-let; return nil }); !errors.Is(err, failure.Busy) || !strings.Contains(err.Error(), "GPU a") {
		t.Errorf("a call that hangs: %v", err)
	}
	if err := c.Do("GPU a", func() error { t.Error("called while another call hangs"); return nil }); !errors.Is(err, failure.Busy) {
		t.Errorf("while it hangs: %v", err)
	}
	c.Limit = time.Minute
	if err := c.Do("GPU b", func() error { return nil }); err != nil {
		t.Errorf("another: %v", err)
	}
	close(let)
	for { // until it has returned, which it does at once
		if err := c.Do("GPU a", func() error { return nil }); err == nil {
			break
		}
	}
}

// A call that is slow by its nature makes others wait, and does not have them taken
// for hung.
func TestWithin(t *testing.T) {
	c := Calls{Limit: 50 * time.Millisecond}
	let, begun := make(chan struct{}), make(chan struct{})
	change, query := make(chan error, 1), make(chan error, 1)
	go func() { change <- c.Within(time.Minute, "GPU a", func() error { close(begun); <-let; return nil }) }()
	<-begun
	go func() { query <- c.Do("GPU a", func() error { <-let; return nil }) }()
	if err := c.Do("GPU b", func() error { <-let; return nil }); !errors.Is(err, failure.Busy) {
		t.Errorf("another GPU that hangs beside it: %v", err)
	}
	close(let)
	if err := <-query; err != nil {
		t.Errorf("a query that waits for the change: %v", err)
	}
	if err := <-change; err != nil {
		t.Errorf("the change: %v", err)
	}
}

// A slow call that hangs is given up with those that waited for it.
func TestWithinHangs(t *testing.T) {
	c := Calls{Limit: time.Millisecond}
	let, begun := make(chan struct{}), make(chan struct{})
	defer close(let)
	change := make(chan error, 1)
	go func() {
		change <- c.Within(20*time.Millisecond, "GPU a", func() error { close(begun); <-let; return nil })
	}()
	<-begun
	if err := c.Do("GPU a", func() error { <-let; return nil }); !errors.Is(err, failure.Busy) {
		t.Errorf("a query that waits for the change: %v", err)
	}
	if err := <-change; !errors.Is(err, failure.Busy) {
		t.Errorf("the change: %v", err)
	}
}
