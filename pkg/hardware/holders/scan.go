package holders

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// access is what one process let us see.
type access int

const (
	free access = iota // it has none of the devices open, or it is gone
	holds
	hidden
)

// find looks through the open files of all processes.
func (f *Finder) find(devices map[uint64]bool) ([]Holder, error) {
	pids, err := f.others()
	if err != nil {
		return nil, err
	}
	var found []Holder
	unseen := 0
	for _, pid := range pids {
		saw, err := f.look(pid, devices)
		switch {
		case err != nil:
			return nil, fmt.Errorf("open files of process %d: %w", pid, err)
		case saw == hidden:
			unseen++
		case saw == holds:
			found = append(found, f.holder(pid))
		}
	}
	if len(found) == 0 && unseen > 0 {
		return nil, failure.New(failure.Unsupported,
			"the open files of %d of %d processes in %s cannot be read: the agent needs CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH and a security module that lets it",
			unseen, len(pids), f.processes)
	}
	return found, nil
}

// others lists all processes but this one, whose PID there is not the one that it
// has for itself.
func (f *Finder) others() ([]int, error) {
	entries, err := os.ReadDir(f.processes)
	if err != nil {
		return nil, fmt.Errorf("list of processes: %w: mount the host's /proc there", err)
	}
	own, _ := os.Readlink(f.path("self")) // not there: this process is in another namespace, and not listed
	if own == "1" {
		return nil, failure.New(failure.Unsupported,
			"%s has this container's processes alone: mount the host's /proc (value nameHolders of the chart) and name it with --processes", f.processes)
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && entry.Name() != own {
			pids = append(pids, pid)
		}
	}
	slices.SortFunc(pids, cmp.Compare[int])
	return pids, nil
}

// look compares device numbers: what a device is called differs between mount
// namespaces.
func (f *Finder) look(pid int, devices map[uint64]bool) (access, error) {
	dir, err := os.Open(f.path(strconv.Itoa(pid), "fd"))
	if err != nil {
		return seen(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return seen(err)
	}
	for _, name := range names {
		var file unix.Statx_t
		// Not synced, so that a dead file server holds up nobody.
		switch err := unix.Statx(int(dir.Fd()), name, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &file); {
		case errors.Is(err, fs.ErrPermission):
			return hidden, nil
		case err == nil && file.Mode&unix.S_IFMT == unix.S_IFCHR && devices[unix.Mkdev(file.Rdev_major, file.Rdev_minor)]:
			return holds, nil
		}
	}
	return free, nil
}

// seen says what a process's refusal means.
func seen(err error) (access, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return free, nil // it has ended meanwhile
	case errors.Is(err, fs.ErrPermission):
		return hidden, nil
	}
	return free, err
}

func (f *Finder) path(elements ...string) string {
	return filepath.Join(append([]string{f.processes}, elements...)...)
}
