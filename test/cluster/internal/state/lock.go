package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
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
	deadline := time.Now().Add(timeout)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return &Lock{f}, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", file, err)
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		if time.Now().After(deadline) {
			f.Close()
			return nil, fmt.Errorf("another launcher has held %s for %s: wait for it, or end it", file, timeout)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Unlock lets others in.
func (l *Lock) Unlock() { l.f.Close() }
