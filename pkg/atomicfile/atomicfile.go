// Package atomicfile replaces files so that a reader, or whoever comes after a
// crash, finds the old content or the new and nothing between.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// temporary marks files of an unfinished write. No file of ours begins so.
const temporary = ".tmp-"

// Writer replaces files in one directory.
type Writer struct {
	Dir string
	// Durable makes what is written survive a power cut (fsync of file and
	// directory). Without it, it only survives the process.
	Durable bool
	Mode    fs.FileMode
	// BeforeRename is passed when the new content is written and not yet in
	// its place. May be nil.
	BeforeRename func()
	// Spares, of a Writer that is Durable, are written anew instead of making files. A
	// reader makes sure that what it has read is still in its place: Read does. May be nil.
	Spares *Spares
}

// Write replaces the file of that name in the directory. After an error no
// temporary file is left, and the old content stands, unless it was only the last
// sync that failed: then the new content is in place and may not survive a power
// cut.
func (w Writer) Write(name string, content []byte) error {
	err := w.write(name, content)
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	if spares, _ := w.Spares.discard(w.Dir); spares == 0 {
		return err
	}
	return w.write(name, content) // where the spare files were
}

func (w Writer) write(name string, content []byte) (err error) {
	tmp, was, err := w.open(name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(tmp.Name()))
		}
		err = errors.Join(err, tmp.Close())
	}()
	if err := w.fill(tmp, was, content); err != nil {
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

// open returns a spare file, or makes a temporary one, and says how it is. It is locked:
// who finds it unlocked knows that its writer is dead.
func (w Writer) open(name string) (*os.File, syscall.Stat_t, error) {
	if f, was := w.Spares.open(w.Dir); f != nil {
		return f, was, nil
	}
	for {
		f, err := os.CreateTemp(w.Dir, temporary+name+"-*")
		if err != nil {
			return nil, syscall.Stat_t{}, err
		}
		if was, ours := claim(f); ours {
			return f, was, nil
		}
		// Somebody swept it before it was locked.
		if err := f.Close(); err != nil {
			return nil, syscall.Stat_t{}, err
		}
	}
}

// claim locks a file, and says how it is. It is ours where it is still in the directory.
func claim(f *os.File) (now syscall.Stat_t, ours bool) {
	return now, lock(f) && syscall.Fstat(int(f.Fd()), &now) == nil && now.Nlink > 0
}

func lock(f *os.File) bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }

func (w Writer) fill(f *os.File, was syscall.Stat_t, content []byte) error {
	_, err := f.Write(content)
	if err == nil && was.Size > int64(len(content)) {
		err = f.Truncate(int64(len(content)))
	}
	if err == nil && fs.FileMode(was.Mode).Perm() != w.Mode {
		err = f.Chmod(w.Mode)
	}
	if err == nil && w.Spares != nil {
		// For Same: kernels before 6.13 count times in steps of some milliseconds, in which
		// a file can be written twice.
		err = os.Chtimes(f.Name(), time.Time{}, time.Now())
	}
	if err == nil && w.Durable {
		err = syncContent(f)
	}
	return err
}

// syncContent is fsync without the times of a file, which nobody needs.
func syncContent(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// Remove removes the file; one that is not there is no error. A removal is not
// synced, also where writes are: after a power cut the file can be there again.
func (w Writer) Remove(name string) error {
	if w.Spares.take(w.Dir, name) {
		return nil
	}
	return removeIfThere(filepath.Join(w.Dir, name))
}

// Close removes the spare files. Who writes or removes afterwards does it without any.
func (w Writer) Close() error {
	w.Spares.close()
	_, err := w.Spares.discard(w.Dir)
	return err
}

func (w Writer) syncDir() error {
	if !w.Durable {
		return nil
	}
	gone := w.Spares.taken()
	d, err := os.Open(w.Dir)
	if err != nil {
		return err
	}
	err = errors.Join(d.Sync(), d.Close())
	if err == nil {
		w.Spares.release(gone)
	}
	return err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
