package admission

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A replica goes on for some moments after it was told to end, unless it has ended before.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		longer, end := Linger(ctx)
		defer end()
		<-time.After(time.Hour)
		cancel()
		begin := time.Now()
		synctest.Wait()
		if longer.Err() != nil {
			t.Error("it ends at once")
		}
		if <-longer.Done(); time.Since(begin) != linger {
			t.Errorf("it ends after %s", time.Since(begin))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		longer, end := Linger(t.Context())
		if end(); longer.Err() == nil {
			t.Error("it does not end when nothing goes on any more")
		}
	})
}
