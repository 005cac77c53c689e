package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// writer makes files below root. It goes on after an error, so that all are
// reported.
type writer struct {
	root   string
	report Report
	errs   []error
}

func (w *writer) path(name string) string { return filepath.Join(w.root, name) }

func (w *writer) check(err error) bool {
	if err != nil {
		w.errs = append(w.errs, err)
	}
	return err == nil
}

// file makes a file of that content.
func (w *writer) file(name, content string, mode fs.FileMode) {
	path := w.path(name)
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return
	}
	if !w.check(os.MkdirAll(filepath.Dir(path), 0o755)) {
		return
	}
	temporary := path + ".new"
	if w.check(os.WriteFile(temporary, []byte(content), mode)) && w.check(os.Chmod(temporary, mode)) &&
		w.check(os.Rename(temporary, path)) {
		w.report.Written++
	}
}

// values makes a directory of small files, each with a newline at its end.
func (w *writer) values(dir string, values map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		w.file(filepath.Join(dir, name), values[name]+"\n", 0o644)
	}
}

// link makes a symbolic link.
func (w *writer) link(name, target string) {
	path := w.path(name)
	if old, err := os.Readlink(path); err == nil && old == target {
		return
	}
	if !w.check(os.MkdirAll(filepath.Dir(path), 0o755)) {
		return
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.check(err)
		return
	}
	if w.check(os.Symlink(target, path)) {
		w.report.Written++
	}
}

// remove takes a file or a directory away.
func (w *writer) remove(name string) {
	path := w.path(name)
	if _, err := os.Lstat(path); err != nil {
		return
	}
	if w.check(os.RemoveAll(path)) {
		w.report.Removed++
	}
}

// removeMatching takes away what matches pattern (filepath.Match), but not what
// keep has.
func (w *writer) removeMatching(pattern string, keep map[string]bool) {
	matches, err := filepath.Glob(w.path(pattern))
	w.check(err)
	for _, match := range matches {
		if name, err := filepath.Rel(w.root, match); err == nil && !keep[name] {
			w.remove(name)
		}
	}
}

// removeEmpty takes a directory away that has nothing in it.
func (w *writer) removeEmpty(name string) {
	if err := os.Remove(w.path(name)); err == nil {
		w.report.Removed++
	} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		w.check(err)
	}
}

func (w *writer) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.report.Notes, text) {
		w.report.Notes = append(w.report.Notes, text)
	}
}
