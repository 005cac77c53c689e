package simulator

import (
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// ErrReadOnly is wrapped by the error of a change where the state cannot be
// written from here.
var ErrReadOnly = errors.New("read-only")

// snapshot is a State with the time stamp of the file it came from. Each write
// has a later time stamp than the one before, so that equal stamps mean equal
// contents.
type snapshot struct {
	modified syscall.Timespec
	state    *State
}

// State returns the machine's state; the caller must not change it. While
// nothing has changed this costs one stat.
func (m *Machine) State() (*State, error) {
	var stat syscall.Stat_t
	if err := syscall.Stat(m.state, &stat); err != nil {
		return nil, m.classify(&os.PathError{Op: "stat", Path: m.state, Err: err})
	}
	if s := m.cache.Load(); s != nil && s.modified == stat.Mtim {
		return s.state, nil
	}
	s, err := m.read()
	if err != nil {
		return nil, err
	}
	m.cache.Store(s)
	return s.state, nil
}

// read reads the file, with the time stamp of the very file that it opened.
func (m *Machine) read() (*snapshot, error) {
	f, err := os.Open(m.state)
	if err != nil {
		return nil, m.classify(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	state := new(State)
	if err := json.NewDecoder(f).Decode(state); err != nil {
		return nil, failure.New(failure.Corrupt, "%s: %w: make the machine again with dovetail-sim create", m.state, err)
	}
	if err := state.check(); err != nil {
		return nil, failure.New(failure.Corrupt, "%s: %w", m.state, err)
	}
	return &snapshot{modified: info.Sys().(*syscall.Stat_t).Mtim, state: state}, nil
}

// Update changes the state. The change is seen whole or not at all, and waits
// for other processes' changes. When change returns an error nothing happens.
func (m *Machine) Update(change func(*State) error) error {
	return m.Frozen(func(s *State) error {
		if err := change(s); err != nil {
			return err
		}
		return m.write(s)
	})
}

// Frozen calls f with the state while nobody can change it.
func (m *Machine) Frozen(f func(*State) error) error {
	return m.locked(func() error {
		s, err := m.read()
		if err != nil {
			return err
		}
		return f(s.state)
	})
}

// locked runs f while holding the machine's lock against other processes and
// other goroutines (flock(2); each call opens the file anew).
func (m *Machine) locked(f func() error) error {
	if err := os.MkdirAll(m.path(""), 0o755); err != nil {
		return m.classify(err)
	}
	lock, err := os.OpenFile(m.path(lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return m.classify(err)
	}
	defer lock.Close()
	for {
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err == nil {
			break
		} else if err != syscall.EINTR {
			return m.classify(&os.PathError{Op: "flock", Path: lock.Name(), Err: err})
		}
	}
	return f()
}

// write replaces the state file. It does not sync: what a power cut takes with
// it is a simulation.
func (m *Machine) write(state *State) error {
	data, err := json.MarshalIndent(state, "", " ")
	if err != nil {
		return err
	}
	temporary := m.state + ".new" // the lock is held: nobody else writes it
	if err := os.WriteFile(temporary, data, 0o644); err != nil {
		return m.classify(err)
	}
	stamp := time.Now()
	if old, err := os.Stat(m.state); err == nil && !stamp.After(old.ModTime()) {
		stamp = old.ModTime().Add(time.Microsecond)
	}
	if err := os.Chtimes(temporary, stamp, stamp); err != nil {
		return m.classify(err)
	}
	return m.classify(os.Rename(temporary, m.state))
}
