package patience

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

func TestDo(t *testing.T) {
	c := Calls{Limit: time.Millisecond}
	wrong := errors.New("wrong")
	c.Limit = time.Minute
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
	for c.hangs("GPU a") { // it returns at once
	}
	if err := c.Do("GPU a", func() error { return nil }); err != nil {
		t.Errorf("when it has returned: %v", err)
	}
}
