// Package keeper is the first process of dovetail-mps's container. It keeps one child
// alive, and inherits what that child leaves: control daemons stay the container's when
// the process that has started them is killed, and no zombie stays.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstWait = 50 * time.Millisecond // before a child that has ended is started again
	lastWait  = 5 * time.Second
	wellAfter = time.Minute // it has lived long enough for a short wait
)

// Run keeps argv running until ctx ends, and then ends it with SIGTERM.
//
// What the child has started is left alone. In a container it ends with Run, since the
// container does: clients of MPS lose their work where the Pod is deleted, which, with
// updates only OnDelete, an administrator does on purpose; the next one starts control
// daemons anew for the sets of devices that it finds recorded.
func Run(ctx context.Context, log *slog.Logger, argv []string) error {
	// In the node's PID namespace, orphans would go to the node's init.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of descendants: %w", err)
	}
	reaped := make(chan os.Signal, 1)
	signal.Notify(reaped, syscall.SIGCHLD)
	defer signal.Stop(reaped)
	for wait := firstWait; ctx.Err() == nil; wait = min(2*wait, lastWait) {
		began := time.Now()
		status, err := keep(ctx, argv, reaped)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if time.Since(began) > wellAfter {
			wait = firstWait
		}
		log.Error("A process has ended and is started again", "process", argv, "status", status)
		for again := time.After(wait); again != nil; {
			select {
			case <-again:
				again = nil
			case <-reaped:
				if _, err := reap(0); err != nil {
					return err
				}
			case <-ctx.Done():
				return nil
			}
		}
	}
	return nil
}

// keep runs argv to its end, and reaps whatever ends beside it.
func keep(ctx context.Context, argv []string, reaped <-chan os.Signal) (status string, err error) {
	child, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return "", err
	}
	defer func() { _ = child.Release() }()
	done := ctx.Done()
	for {
		ended, err := reap(child.Pid)
		if err != nil {
			return "", err
		}
		if ended != nil {
			return describe(*ended), nil
		}
		select {
		case <-reaped:
		case <-done:
			_ = unix.Kill(child.Pid, unix.SIGTERM) // it is not reaped yet, so it is this one
			done = nil
		}
	}
}

// reap takes all children that have ended, and returns how the one with that process
// ID did, if it is among them.
func reap(pid int) (*unix.WaitStatus, error) {
	var ended *unix.WaitStatus
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case got == 0 || errors.Is(err, unix.ECHILD):
			return ended, nil
		case err != nil:
			return ended, err
		case got == pid:
			ended = &status
		}
	}
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
