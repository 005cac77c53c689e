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
	if err != nil {
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

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// follow waits for the end, or for Close.
func (p *Process) follow(raw syscall.RawConn) {
	err := raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
	if err == nil {
		close(p.ended)
	}
}

// startOf reads the time that a process started at. One that is only waited for by
// its parent has ended.
func startOf(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, can have anything in it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0, ErrGone
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}
