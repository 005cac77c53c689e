// Package atomicfile replaces files so that a reader, or whoever comes after a
// crash, finds the old content or the new and nothing between.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// temporary marks files of an unfinished write. No file of ours begins so.
const temporary = ".tmp-"

// Writer replaces files in one directory.
type Writer struct {
	Dir string
	// Durable makes each change survive a power cut (fsync of file and
	// directory). Without it a change only survives the process.
	Durable bool
	Mode    fs.FileMode
	// BeforeRename is passed when the new content is written and not yet in
	// its place. May be nil.
	BeforeRename func()
}

// Write replaces the file of that name in the directory. After an error the old
// content stands and no temporary file is left.
func (w Writer) Write(name string, content []byte) (err error) {
	tmp, err := os.CreateTemp(w.Dir, temporary+name+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(tmp.Name()))
		}
	}()
	if err := w.fill(tmp, content); err != nil {
		return err
	}
	if w.BeforeRename != nil {
		w.BeforeRename()
	}
	if err := os.Rename(tmp.Name(), filepath.Join(w.Dir, name)); err != nil {
		return err
	}
	return w.syncDir()
}

func (w Writer) fill(f *os.File, content []byte) error {
	_, err := f.Write(content)
	if err == nil {
		err = f.Chmod(w.Mode)
	}
	if err == nil && w.Durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Remove removes the file; one that is not there is no error.
func (w Writer) Remove(name string) error {
	err := os.Remove(filepath.Join(w.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.syncDir()
}

// Sweep removes what writes that never finished have left. Only files whose name
// begins with one of ours are touched. No write may be under way.
func (w Writer) Sweep(prefix string) error {
	entries, err := os.ReadDir(w.Dir)
	if err != nil {
		return fmt.Errorf("sweep temporary files: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporary+prefix) {
			err = errors.Join(err, removeIfThere(filepath.Join(w.Dir, e.Name())))
		}
	}
	return err
}

func (w Writer) syncDir() error {
	if !w.Durable {
		return nil
	}
	d, err := os.Open(w.Dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
