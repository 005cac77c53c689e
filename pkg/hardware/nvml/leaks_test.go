package nvml_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// checkLeaks fails a test after which there are more goroutines or open files
// than before it. Files of the library's own runtime are opened once and stay.
func checkLeaks(t *testing.T) {
	t.Helper()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	t.Cleanup(func() {
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		// Calls that hang for a test come back by then.
		for over := time.Now().Add(patiencetest.Limit); runtime.NumGoroutine() > goroutines && time.Now().Before(over); {
			<-again.C
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			stacks := make([]byte, 1<<16)
			t.Errorf("%d goroutines, %d before\n%s", n, goroutines, stacks[:runtime.Stack(stacks, true)])
		}
		// Each runtime keeps an epoll and an eventfd, from the first use on.
		if n := openFiles(t); n > files+4 {
			t.Errorf("%d open files, %d before", n, files)
		}
	})
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
