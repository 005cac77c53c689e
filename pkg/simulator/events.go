package simulator

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// Events reads the machine's events from one point on.
type Events struct {
	machine *Machine
	notify  *os.File // inotify(7) on the state's directory
	next    uint64
}

// Events starts reading: events that came before are not seen.
func (m *Machine) Events() (*Events, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	e := &Events{machine: m, notify: os.NewFile(uintptr(fd), "inotify")}
	if _, err := syscall.InotifyAddWatch(fd, m.path(""), syscall.IN_MOVED_TO); err != nil {
		e.Close()
		return nil, m.classify(&os.PathError{Op: "inotify_add_watch", Path: m.path(""), Err: err})
	}
	state, err := m.State()
	if err != nil {
		e.Close()
		return nil, err
	}
	e.next = state.NextEvent
	return e, nil
}

// Close frees the descriptor.
func (e *Events) Close() error { return e.notify.Close() }

// Next returns the next event that wanted accepts. It waits until ctx ends, and
// then returns ctx's error. It also returns, with a nil event, after any change
// of state, so that the caller can look at what else has become of the machine.
func (e *Events) Next(ctx context.Context, wanted func(Event) bool) (*Event, error) {
	if event, err := e.Poll(wanted); event != nil || err != nil {
		return event, err
	}
	if err := e.wait(ctx); err != nil {
		return nil, err
	}
	return e.Poll(wanted)
}

// Poll is Next without the wait: a nil event means that there is none.
func (e *Events) Poll(wanted func(Event) bool) (*Event, error) {
	state, err := e.machine.State()
	if err != nil {
		return nil, err
	}
	for i := range state.Events {
		event := &state.Events[i]
		if event.Sequence < e.next {
			continue
		}
		e.next = event.Sequence + 1
		if wanted(*event) {
			return event, nil
		}
	}
	return nil, nil
}

// wait returns nil once the state has been replaced.
func (e *Events) wait(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := e.notify.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() {
			e.notify.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // closed: nobody waits
		})
		var buffer [4096]byte // several changes; what they say does not matter
		_, err := e.notify.Read(buffer[:])
		stop()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		// ctx ended, or that of an earlier wait did so late: look again.
	}
	return ctx.Err()
}
