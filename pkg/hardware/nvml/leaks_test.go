package nvml_test

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// checkLeaks fails a test after which there are more goroutines or open files
// than before it. Files of the library's own runtime are opened once and stay.
func checkLeaks(t *testing.T) {
	t.Helper()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	t.Cleanup(func() {
		deadline := time.Now().Add(20 * time.Second) // calls that hang for a test come back by then
		for runtime.NumGoroutine() > goroutines && time.Now().Before(deadline) {
			runtime.Gosched()
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
