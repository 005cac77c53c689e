// Package lock has locks with names that hold between goroutines and between
// processes: while the agent is upgraded, the old and the new one run side by
// side. A lock ends with its process.
package lock

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// File is an empty file that all locks are in: each is one byte far behind its
// end, where its name's hash says (fcntl(2), open file description locks). So
// taking a lock makes and removes no file.
type File string

// fence orders memory between goroutines that hold a lock one after the other:
// Go knows nothing of the kernel's locks.
var fence atomic.Uint64

// Lock takes all the named locks, waiting for each until ctx ends. Duplicates
// are taken once; the order is the same for everybody, so no two callers wait
// for each other. The returned function gives them back.
func (f File) Lock(ctx context.Context, names ...string) (unlock func(), err error) {
	fd, err := f.open()
	if err != nil {
		return nil, err
	}
	at := map[int64]string{} // two names at one place would only wait in vain
	for _, name := range names {
		at[place(name)] = name
	}
	places := make([]int64, 0, len(at))
	for p := range at {
		places = append(places, p)
	}
	slices.Sort(places)
	for _, p := range places {
		if err := lockByte(ctx, fd, p); err != nil {
			return nil, fmt.Errorf("lock %s: %w", at[p], err)
		}
	}
	if err := ctx.Err(); err != nil { // they came too late
		return nil, errors.Join(err, unix.Close(fd))
	}
	fence.Load()
	return func() {
		fence.Add(1)
		_ = unix.Close(fd) // the locks end with the description
	}, nil
}

// open makes an open file description, which is what a lock belongs to.
func (f File) open() (int, error) {
	for {
		fd, err := unix.Open(string(f), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return -1, fmt.Errorf("open lock file %s: %w", f, err)
		}
	}
}

// place is the byte that stands for a name.
func place(name string) int64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return int64(hash.Sum64() >> 2) // the end of a range must not overflow
}

// lockByte locks one byte. After an error fd is closed, at the latest once the
// lock comes.
func lockByte(ctx context.Context, fd int, at int64) error {
	err := fcntl(fd, unix.F_OFD_SETLK, oneByte(at))
	if err == nil {
		return nil
	}
	if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) {
		return errors.Join(err, unix.Close(fd))
	}
	locked := make(chan error, 1)
	go func() { locked <- fcntl(fd, unix.F_OFD_SETLKW, oneByte(at)) }()
	select {
	case err := <-locked:
		if err != nil {
			return errors.Join(err, unix.Close(fd))
		}
		return nil
	case <-ctx.Done():
		// What was taken before is given back now, not when this lock comes.
		_ = fcntl(fd, unix.F_OFD_SETLK, unix.Flock_t{Type: unix.F_UNLCK, Whence: io.SeekStart})
		go func() {
			<-locked //nolint:errcheck // nobody wants the lock any more
			_ = unix.Close(fd)
		}()
		return context.Cause(ctx)
	}
}

// oneByte is the write lock of one byte.
func oneByte(at int64) unix.Flock_t {
	return unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
}

func fcntl(fd, command int, lock unix.Flock_t) error {
	for {
		request := lock
		if err := unix.FcntlFlock(uintptr(fd), command, &request); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
