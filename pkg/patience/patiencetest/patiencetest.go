// Package patiencetest waits, in tests, for what nobody tells them of: what another
// process or the kernel does.
package patiencetest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Limit is how long a test waits for what must happen: far longer than it takes, on a busy
// machine, too.
const Limit = time.Minute

// Until waits until something is so, and fails the test where that takes longer than Limit.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for over := time.After(Limit); !is(); {
		select {
		case <-again.C:
		case <-over:
			t.Fatalf("it does not happen that %s", what)
		}
	}
}

// Hurried is how a call ends whose time is over soon, but that on a busy machine, too, has
// had enough to find out what is wrong: it is made again, with twice the time, while its
// error is that there was too little.
func Hurried(t testing.TB, call func(ctx context.Context) error) (err error) {
	t.Helper()
	limit := 25 * time.Millisecond
	Until(t, "a call finds out what is wrong", func() bool {
		limit *= 2
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		err = call(ctx)
		return !errors.Is(err, context.DeadlineExceeded)
	})
	return err
}
