package kernel

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// fromMain is what happens to a caller on the main thread, on which packages are
// initialised.
var fromMain = func() (r struct {
	caller, callee int
	err            error
}) {
	r.caller = unix.Gettid()
	own, err := os.Open(ofThread)
	if err != nil {
		r.err = err
		return r
	}
	defer func() { _ = own.Close() }()
	r.err = onThread(int(own.Fd()), func() error {
		r.callee = unix.Gettid()
		return nil
	})
	return r
}()

// TestMainThreadStays: /proc/self/ns/net is the main thread's, and must not lead
// elsewhere while something is done in a Pod.
func TestMainThreadStays(t *testing.T) {
	if errors.Is(fromMain.err, unix.EPERM) {
		t.Skip("entering a network namespace needs CAP_SYS_ADMIN")
	}
	if fromMain.err != nil || fromMain.caller != os.Getpid() {
		t.Fatalf("called from thread %d of %d: %v", fromMain.caller, os.Getpid(), fromMain.err)
	}
	if fromMain.callee == os.Getpid() {
		t.Error("the main thread has been put into another namespace")
	}
}
