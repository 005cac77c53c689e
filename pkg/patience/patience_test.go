package patience

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Calls
		wrong := errors.New("wrong")
		if err := c.Do("GPU a", func() error { return wrong }); !errors.Is(err, wrong) {
			t.Errorf("error %v", err)
		}
		let := make(chan struct{})
		began := time.Now()
		err := c.Do("GPU a", func() error { <-let; return nil })
		if !errors.Is(err, failure.Busy) || !strings.Contains(err.Error(), "GPU a") || time.Since(began) != Default {
			t.Errorf("a call that hangs: %v, after %s", err, time.Since(began))
		}
		began = time.Now()
		err = c.Do("GPU a", func() error { t.Error("called while another call hangs"); return nil })
		if !errors.Is(err, failure.Busy) || time.Since(began) != 0 {
			t.Errorf("while it hangs: %v, after %s", err, time.Since(began))
		}
		if err := c.Do("GPU b", func() error { return nil }); err != nil {
			t.Errorf("another: %v", err)
		}
		close(let)
		synctest.Wait()
		if err := c.Do("GPU a", func() error { return nil }); err != nil {
			t.Errorf("when it has returned: %v", err)
		}
	})
}

// A call that is slow by its nature makes others wait, and does not have them taken
// for hung.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Calls{Limit: time.Second}
		let := make(chan struct{})
		change, query := make(chan error, 1), make(chan error, 1)
		go func() { change <- c.Within(time.Minute, "GPU a", func() error { <-let; return nil }) }()
		synctest.Wait()
		go func() { query <- c.Do("GPU a", func() error { <-let; return nil }) }()
		synctest.Wait()
		if !c.Changing("GPU a") || c.Changing("GPU b") {
			t.Error("it is not known what is being changed")
		}
		began := time.Now()
		if err := c.Do("GPU b", func() error { <-let; return nil }); !errors.Is(err, failure.Busy) || time.Since(began) != c.Limit {
			t.Errorf("another GPU that hangs beside it: %v, after %s", err, time.Since(began))
		}
		<-time.After(50 * time.Second)
		close(let)
		if err := <-query; err != nil {
			t.Errorf("a query that waits for the change: %v", err)
		}
		if err := <-change; err != nil || c.Changing("GPU a") {
			t.Errorf("the change: %v", err)
		}
	})
}

// A slow call that hangs is given up with those that waited for it.
func TestWithinHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Calls{Limit: time.Second}
		let := make(chan struct{})
		defer close(let)
		change := make(chan error, 1)
		began := time.Now()
		go func() {
			change <- c.Within(time.Minute, "GPU a", func() error { <-let; return nil })
		}()
		synctest.Wait()
		if err := c.Do("GPU a", func() error { <-let; return nil }); !errors.Is(err, failure.Busy) {
			t.Errorf("a query that waits for the change: %v", err)
		}
		if err := <-change; !errors.Is(err, failure.Busy) || time.Since(began) != time.Minute || c.Changing("GPU a") {
			t.Errorf("the change: %v, after %s", err, time.Since(began))
		}
	})
}

// Who waited for a slow call has its time anew when that returns.
func TestTimeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Calls{Limit: time.Second}
		let, never := make(chan struct{}), make(chan struct{})
		defer close(never)
		change, query := make(chan error, 1), make(chan error, 1)
		go func() { change <- c.Within(time.Minute, "GPU a", func() error { <-let; return nil }) }()
		synctest.Wait()
		go func() { query <- c.Do("GPU a", func() error { <-never; return nil }) }()
		<-time.After(30 * time.Second)
		close(let)
		if err := <-change; err != nil {
			t.Errorf("the change: %v", err)
		}
		returned := time.Now()
		if err := <-query; !errors.Is(err, failure.Busy) || time.Since(returned) < c.Limit {
			t.Errorf("the query: %v, %s after the change", err, time.Since(returned))
		}
	})
}
