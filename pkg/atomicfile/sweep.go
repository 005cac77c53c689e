package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Sweep removes what writers that died have left of files whose names begin with
// prefix, and spare files. Writers that live, in this process or another, are not
// disturbed.
func (w Writer) Sweep(prefix string) error {
	entries, err := os.ReadDir(w.Dir)
	if err != nil {
		return fmt.Errorf("sweep temporary files: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporary+prefix) || strings.HasPrefix(e.Name(), spare+prefix) {
			err = errors.Join(err, removeIfDead(filepath.Join(w.Dir, e.Name())))
		}
	}
	return err
}

func removeIfDead(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if lock(f) {
		err = removeIfThere(path)
	}
	return errors.Join(err, f.Close())
}
