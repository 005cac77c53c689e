// Package ns enters the namespaces of another process.
package ns

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Kind is one kind of namespace, named as in /proc/PID/ns.
type Kind string

// The kinds that nodes have of their own. A process that enters a PID namespace
// stays outside itself; its children are inside.
const (
	Net   Kind = "net"
	UTS   Kind = "uts"
	PID   Kind = "pid"
	Mount Kind = "mnt"
)

// Node is what it takes to be on a node.
var Node = []Kind{Net, UTS, PID, Mount}

// Enter moves the calling goroutine's thread into namespaces of process pid, and
// binds the goroutine to that thread for good: let the goroutine end, or exec.
// Processes that the goroutine starts are inside.
func Enter(pid int, kinds ...Kind) error {
	runtime.LockOSThread()
	files := map[Kind]*os.File{}
	for _, k := range kinds { // all first: after Mount, /proc is another one
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, k))
		if err != nil {
			return fmt.Errorf("opening %s namespace: %w", k, err)
		}
		defer f.Close()
		files[k] = f
	}
	for _, k := range []Kind{Net, UTS, PID, Mount} {
		f, ok := files[k]
		if !ok {
			continue
		}
		if k == Mount {
			// Threads share their root and working directory; a thread that
			// does cannot change its mount namespace.
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return fmt.Errorf("separating the thread's root directory: %w", err)
			}
		}
		if err := unix.Setns(int(f.Fd()), 0); err != nil {
			return fmt.Errorf("entering %s namespace: %w (root is needed)", k, err)
		}
	}
	return nil
}
