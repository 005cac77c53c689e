package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"k8s.io/klog/v2"
)

// removedDelay lets a wave of releases pass.
const removedDelay = 500 * time.Millisecond

// removed is where directories go that nobody needs any more, to be removed behind the
// kubelet's back: that takes longer than all else of a release.
type removed struct {
	dir   string
	asked chan struct{}
}

// Take removes a directory from where it is; one that is not there is no error. What a
// full disk has no place for is removed at once: it must not keep a claim from being
// released.
func (r *removed) Take(path string) error {
	if r.take(path) != nil {
		return os.RemoveAll(path)
	}
	select {
	case r.asked <- struct{}{}:
	default: // it is due already
	}
	return nil
}

func (r *removed) take(path string) error {
	to := filepath.Join(r.dir, fmt.Sprintf("%s-%016x", filepath.Base(path), rand.Uint64()))
	err := os.Rename(path, to)
	if !errors.Is(err, fs.ErrNotExist) { // the one, or the other
		return err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	return os.Rename(path, to)
}

// run removes what was taken, also before a crash, until ctx ends.
func (r *removed) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.clear(); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot remove directories of claims that were released", "dir", r.dir)
		}
		select {
		case <-ctx.Done():
		case <-r.asked:
			select {
			case <-ctx.Done():
			case <-time.After(removedDelay):
			}
		}
	}
}

func (r *removed) clear() error {
	entries, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(r.dir, e.Name())))
	}
	return errors.Join(errs...)
}
