package poll

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	no := errors.New("no")
	tries := 0
	third := func() error {
		if tries++; tries < 3 {
			return no
		}
		return nil
	}
	if err := For(time.Minute, time.Microsecond, third); err != nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
	err := For(0, time.Minute, func() error { return no })
	if !errors.Is(err, no) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if err := For(time.Minute, time.Minute, func() error { return Stop(no) }); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Until(ctx, time.Minute, func() error { return no }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
