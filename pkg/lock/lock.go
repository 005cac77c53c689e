// Package lock has locks with names that hold between goroutines and between
// processes: while the agent is upgraded, the old and the new one run side by
// side. A lock ends with its process.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Dir is a directory that holds nothing but lock files.
type Dir string

// Lock takes all the named locks, waiting for each until ctx ends. Duplicates
// are taken once; the order is the same for everybody, so no two callers wait
// for each other. Names are file names. The returned function gives them back.
func (d Dir) Lock(ctx context.Context, names ...string) (unlock func(), err error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	var held []*os.File
	unlock = func() {
		for _, f := range slices.Backward(held) {
			release(f)
		}
	}
	for _, name := range names {
		f, err := d.lockOne(ctx, name)
		if err != nil {
			unlock()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		held = append(held, f)
	}
	return unlock, nil
}

func (d Dir) lockOne(ctx context.Context, name string) (*os.File, error) {
	path := filepath.Join(string(d), name)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(ctx, f); err != nil {
			return nil, err
		}
		if isAt(f, path) {
			return f, nil
		}
		// The former holder removed the file between our open and our lock.
		_ = f.Close()
	}
}

// flock locks f. On an error f is closed, at the latest once the lock comes.
func flock(ctx context.Context, f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return nil
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.Join(err, f.Close())
	}
	locked := make(chan error, 1)
	go func() { locked <- flockBlocking(f) }()
	select {
	case err := <-locked:
		if err != nil {
			return errors.Join(err, f.Close())
		}
		return nil
	case <-ctx.Done():
		go func() {
			<-locked
			_ = f.Close()
		}()
		return context.Cause(ctx)
	}
}

func flockBlocking(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// isAt says whether f is still the file at path.
func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// release removes the file while the lock is held, so that the directory does
// not grow with every claim, and then lets go.
func release(f *os.File) {
	_ = os.Remove(f.Name())
	_ = f.Close()
}

// Sweep removes the files that killed processes have left. Locks that somebody
// holds stay.
func (d Dir) Sweep() error {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("sweep locks: %w", err)
	}
	for _, e := range entries {
		f, err := os.OpenFile(filepath.Join(string(d), e.Name()), os.O_RDWR|syscall.O_CLOEXEC, 0)
		if err != nil {
			continue // gone meanwhile
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && isAt(f, f.Name()) {
			release(f)
			continue
		}
		_ = f.Close()
	}
	return nil
}
