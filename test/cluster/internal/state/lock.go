package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/poll"
)

// lockDir holds locks; they are empty files on a tmpfs and stay.
const lockDir = "/run/lock/dovetail-cluster"

// Lock is held by one process at a time; the kernel drops it when that ends.
type Lock struct{ f *os.File }

// LockCluster locks `up` and `down` of one cluster against each other.
func LockCluster(name string, timeout time.Duration) (*Lock, error) {
	return LockFile(filepath.Join(lockDir, "cluster-"+name), timeout, nil)
}

// LockFile locks a file, which it makes. It calls waiting, if given, once before
// it waits.
func LockFile(file string, timeout time.Duration, waiting func()) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = poll.For(timeout, 20*time.Millisecond, func() error {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return poll.Stop(fmt.Errorf("locking %s: %w", file, err))
		case waiting != nil:
			waiting()
			waiting = nil
		}
		return fmt.Errorf("another launcher holds %s: wait for it, or end it", file)
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{f}, nil
}

// Unlock lets others in.
func (l *Lock) Unlock() { _ = l.f.Close() }
