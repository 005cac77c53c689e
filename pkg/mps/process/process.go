// Package process follows processes that need not be children of this one, and tells
// them from others that got their process ID later.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ID is a process for as long as the node runs: process IDs come again.
type ID struct {
	PID int `json:"pid"`
	// Start is when it started, in clock ticks since boot (proc_pid_stat(5), field 22).
	Start uint64 `json:"start"`
}

// Process is one that was there when it was opened.
type Process struct {
	ID    ID
	pidfd *os.File
	ended chan struct{}
}

// ErrGone says that there is no such process any more.
var ErrGone = errors.New("the process has ended")

// Open opens a process by its process ID.
func Open(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, ErrGone
	}
	if err == nil {
		err = unix.SetNonblock(fd, true) // for Go's poller
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	p := &Process{pidfd: os.NewFile(uintptr(fd), "pidfd"), ended: make(chan struct{})}
	start, err := startOf(pid)
	if err != nil || hasEnded(uintptr(fd)) {
		return nil, errors.Join(ErrGone, p.Close())
	}
	p.ID = ID{PID: pid, Start: start}
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	go p.follow(raw)
	return p, nil
}

// Again opens the very process that had this ID.
func Again(id ID) (*Process, error) {
	if id.PID <= 0 {
		return nil, ErrGone
	}
	p, err := Open(id.PID)
	if err != nil {
		return nil, err
	}
	if p.ID != id {
		return nil, errors.Join(ErrGone, p.Close())
	}
	return p, nil
}

// Close lets the process be. No call may follow.
func (p *Process) Close() error { return p.pidfd.Close() }

// Signal sends a signal; a process that has ended is no error.
func (p *Process) Signal(signal unix.Signal) error {
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.PidfdSendSignal(int(fd), signal, nil, 0) }); err != nil {
		return err
	}
	if failed != nil && !errors.Is(failed, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", p.ID.PID, failed)
	}
	return nil
}

// Root opens the directory that is the process's root, in the mounts that the process has.
// It stays when the process ends.
func (p *Process) Root() (*os.File, error) {
	root, err := os.OpenFile(fmt.Sprintf("/proc/%d/root", p.ID.PID), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if start, err := startOf(p.ID.PID); err != nil || start != p.ID.Start { // it may be another's
		return nil, errors.Join(ErrGone, root.Close())
	}
	return root, nil
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// follow waits for the end, or for Close.
func (p *Process) follow(raw syscall.RawConn) {
	if err := raw.Read(hasEnded); err == nil {
		close(p.ended)
	}
}

// hasEnded says whether all of a process's threads have, be it waited for by its parent
// or not. The state in /proc would not do: it is the first thread's, which a process that
// goes on to another program by another thread lacks for a moment.
func hasEnded(pidfd uintptr) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// startOf reads the time that a process started at.
func startOf(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, can have anything in it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat: %q has no start time", pid, stat)
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}
