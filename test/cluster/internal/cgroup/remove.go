package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/poll"
)

// Kill ends every process in the group and below, and returns when none is left.
func (t Tree) Kill(group string, timeout time.Duration) error {
	return poll.For(timeout, 5*time.Millisecond, func() error {
		pids := t.Procs(group)
		if len(pids) == 0 {
			return nil
		}
		t.thaw(group)
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return fmt.Errorf("processes %v in cgroup %s do not die; look at /proc/%d/stack", pids, group, pids[0])
	})
}

// Procs lists the processes in the group and below, as seen from the caller's PID
// namespace. Zombies are not listed by v2; on v1 they leave when they are reaped.
func (t Tree) Procs(group string) []int {
	seen := map[int]bool{}
	var out []int
	for _, d := range t.dirs(group) {
		walk(d, func(dir string) {
			fields, _ := words(filepath.Join(dir, procsFile))
			for _, f := range fields {
				pid, err := strconv.Atoi(f)
				if err == nil && pid > 0 && !seen[pid] {
					seen[pid] = true
					out = append(out, pid)
				}
			}
		})
	}
	return out
}

// thaw lets frozen processes run: on v1 a frozen one does not even die.
func (t Tree) thaw(group string) {
	for _, d := range t.dirs(group) {
		walk(d, func(dir string) {
			_ = write(filepath.Join(dir, "freezer.state"), "THAWED")
			_ = write(filepath.Join(dir, "cgroup.freeze"), "0")
		})
	}
}

// Remove removes the group and everything below it; its processes must be gone.
// The kernel may hold a group for a moment after its last process.
func (t Tree) Remove(group string, timeout time.Duration) error {
	return poll.For(timeout, 5*time.Millisecond, func() error {
		var errs error
		for _, d := range t.dirs(group) {
			errs = errors.Join(errs, removeTree(d))
		}
		if errs != nil {
			return fmt.Errorf("removing cgroup %s: %w", group, errs)
		}
		return nil
	})
}

// RemoveChildren removes the groups below a group, but not `keep`.
func (t Tree) RemoveChildren(group, keep string, timeout time.Duration) error {
	names := map[string]bool{}
	for _, d := range t.dirs(group) {
		entries, _ := os.ReadDir(d)
		for _, e := range entries {
			if e.IsDir() && e.Name() != keep {
				names[e.Name()] = true
			}
		}
	}
	var errs error
	for n := range names {
		errs = errors.Join(errs, t.Remove(filepath.Join(group, n), timeout))
	}
	return errs
}

// removeTree removes the directories below dir and dir itself, deepest first.
// Control files cannot be unlinked and need not be.
func removeTree(dir string) error {
	var dirs []string
	walk(dir, func(d string) { dirs = append(dirs, d) })
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := unix.Rmdir(dirs[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "rmdir", Path: dirs[i], Err: err}
		}
	}
	return nil
}

// walk calls fn for dir and each directory below it, parents first.
func walk(dir string, fn func(string)) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() { // an error: it vanished meanwhile
			fn(path)
		}
		return nil
	})
}
