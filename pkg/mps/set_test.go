package mps_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/mps"
)

// TestSweepStaysInside: whoever swaps a directory and a link while it is swept cannot
// have files removed elsewhere.
func TestSweepStaysInside(t *testing.T) {
	base := t.TempDir()
	pipe, host := filepath.Join(base, "pipe"), filepath.Join(base, "host")
	file, dir, link := filepath.Join(host, "file"), filepath.Join(pipe, "z"), filepath.Join(pipe, "zz")
	err := errors.Join(os.Mkdir(pipe, 0o755), os.Mkdir(host, 0o755), os.WriteFile(file, nil, 0o600))
	for i := range 300 { // it takes a while
		err = errors.Join(err, os.Mkdir(fmt.Sprintf("%s/a%03d", pipe, i), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for !stop.Load() {
			_, _ = os.Mkdir(dir, 0o755), os.Symlink(host, link)
			for range 2 {
				_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range 300 {
		_ = mps.Sweep(pipe) // it may fail: who disturbs it has no claim on it
		if _, err := os.Stat(file); err != nil {
			t.Error("a file elsewhere was removed")
			break
		}
	}
	stop.Store(true)
	<-stopped
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "control"), nil, 0o600), mps.Sweep(pipe)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "control")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file inside: %v", err)
	}
}
