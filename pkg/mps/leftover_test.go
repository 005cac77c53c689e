package mps_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/mps"
	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

// TestEarlierBoot: what is of an earlier boot, half made or half removed, goes.
func TestEarlierBoot(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	c := newClient(t, w.start(t, w.uuids(0)).Pipe, 0)
	half := filepath.Join(w.options.Dir, "0123456789ab")
	if err := errors.Join(os.MkdirAll(filepath.Join(half, "pipe"), 0o755), os.WriteFile(filepath.Join(half, "set.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	w.options.BootID = "next"
	w.open(t)
	w.nothing(t)
	if l := c.next(t); !l.Ended {
		t.Errorf("the client: %+v", l)
	}
	w.start(t, w.uuids(0))
}

// TestLeftoverThatStays: what cannot be removed is no set to start beside, and goes once
// it can.
func TestLeftoverThatStays(t *testing.T) {
	for name, then := range map[string]func(w *world) error{
		"start": func(w *world) error { _, err := w.StartMPS(t.Context(), w.uuids(0)); return err },
		"stop":  func(w *world) error { return w.StopMPS(t.Context(), w.uuids(0)) },
	} {
		for _, readable := range []bool{true, false} {
			w := newWorld(t, "dgx-h100")
			pipe := w.start(t, w.uuids(0)).Pipe
			w.Close()
			if !readable {
				if err := os.WriteFile(filepath.Join(pipe, "../set.json"), []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Mount("none", pipe, "tmpfs", 0, ""); err != nil {
				t.Skipf("no tmpfs: %v", err)
			}
			w.options.BootID = "next"
			var err error
			if w.Manager, err = mps.New(w.options); !errors.Is(err, syscall.EBUSY) {
				t.Errorf("%s, %t: found again: %v", name, readable, err)
			}
			if err := then(w); !errors.Is(err, syscall.EBUSY) {
				t.Errorf("%s, %t: %v", name, readable, err)
			}
			if err := syscall.Unmount(pipe, 0); err != nil {
				t.Fatal(err)
			}
			if err := then(w); err != nil {
				t.Errorf("%s, %t, once it can be removed: %v", name, readable, err)
			}
			if err := w.StopMPS(t.Context(), w.uuids(0)); err != nil {
				t.Error(err)
			}
			w.nothing(t)
		}
	}
}

// TestFullDisk: nothing is left of what could not be written, and what runs can be
// stopped.
func TestFullDisk(t *testing.T) {
	w := newWorld(t, "dgx-h100")
	w.Close()
	if err := syscall.Mount("none", w.options.Dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	defer func() {
		w.Close()
		killAll(t, w.options.Dir)
		if err := syscall.Unmount(w.options.Dir, 0); err != nil {
			t.Error(err)
		}
	}()
	w.open(t)
	w.start(t, w.uuids(0))
	ballast := filepath.Join(w.options.Dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	if _, err := w.StartMPS(t.Context(), w.uuids(1)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a start on a full disk: %v", err)
	}
	if entries, err := os.ReadDir(w.options.Dir); err != nil || len(entries) != 2 {
		t.Errorf("there are %v, %v", entries, err)
	}
	if err := w.StopMPS(t.Context(), w.uuids(0)); err != nil {
		t.Errorf("a stop on a full disk: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if left := processes(t, w.options.Dir); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// TestNoDaemonNoShm: what a container needs to start is there just as long as the
// control daemon is.
func TestNoDaemonNoShm(t *testing.T) {
	w := newWorld(t, "l40s")
	devices := w.uuids(0)
	d := w.start(t, devices)
	want := inode(t, filepath.Join(filepath.Dir(d.Pipe), "shm"))
	if got := inode(t, d.Shm); got != want {
		t.Errorf("%s is inode %d, want %d", d.Shm, got, want)
	}
	w.Close() // so that nobody starts it again
	killAll(t, w.options.Dir)
	patiencetest.Until(t, d.Shm+" is gone", func() bool { // once its parent knows
		_, err := os.Stat(d.Shm)
		return errors.Is(err, os.ErrNotExist)
	})
	w.open(t)
	if again := w.start(t, devices); again != d || inode(t, d.Shm) != want {
		t.Errorf("started again, it is %+v, and was %+v", again, d)
	}
}
