// Package patiencetest waits, in tests, for what nobody tells them of: what another
// process or the kernel does.
package patiencetest

import (
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
