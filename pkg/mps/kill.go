package mps

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/mps/process"
)

// removeAll kills what runs for the set with that directory, and removes the directory,
// of which os.RemoveAll follows no link.
func removeAll(dir string) error {
	if err := killAll(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// killAll kills control daemon and servers of the set with that directory; servers can
// outlive their daemon, and start while others are killed.
func killAll(dir string) error {
	for deadline := time.Now().Add(killPatience); ; {
		found, err := process.Find(func(l *process.Look) bool { return belongs(l, dir) })
		if err != nil || len(found) == 0 {
			return err
		}
		var left []string
		for _, p := range found {
			_ = p.Signal(unix.SIGKILL) // whether it has worked is seen below
			if !ended(p, max(0, time.Until(deadline))) {
				left = append(left, fmt.Sprint(p.ID.PID))
			}
			_ = p.Close()
		}
		if len(left) > 0 {
			return failure.New(failure.Busy, "MPS processes %s (%s) do not end though killed: look for Xid errors in the kernel's log, then reset the GPU or reboot the node",
				strings.Join(left, ", "), dir)
		}
	}
}

// marker is an environment variable that names the set's directory to what is started
// for it.
const marker = "DOVETAIL_MPS"

// belongs says whether a process is control daemon or server of the set with that
// directory, which are in this process's container. Clients, too, have the pipe directory
// in their environment. A server may have an environment that its control daemon has made
// for it.
func belongs(l *process.Look, dir string) bool {
	const program = "nvidia-cuda-mps" // of both; the kernel keeps just these 15 bytes
	started := l.Has(marker, dir) || l.Has(pipeVariable, filepath.Join(dir, "pipe")) &&
		(strings.HasPrefix(l.Name, program) || strings.HasPrefix(l.Program, program))
	return started && l.SameContainer()
}
