// Package launch runs a program of the NVIDIA driver in the driver's root, in a mount
// namespace of its own, so that no mount is left when the program has ended.
package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Spec says what to run.
type Spec struct {
	// Root is the driver's root directory, which becomes the program's.
	Root string `json:"root"`
	// Dir is a directory that the program sees under the same path as others do: what
	// clients are told of it must be right for them.
	Dir string `json:"dir,omitempty"`
	// Shm, where given, is the program's /dev/shm.
	Shm string `json:"shm,omitempty"`
	// Command is the program's path in Root, and its arguments.
	Command []string `json:"command"`
}

// Argument is a spec as Exec takes it.
func (s Spec) Argument() (string, error) {
	data, err := json.Marshal(s)
	return string(data), err
}

// Exec becomes the program, with this process's environment; it only returns with an
// error.
func Exec(argument string) error {
	var s Spec
	if err := json.Unmarshal([]byte(argument), &s); err != nil {
		return err
	}
	runtime.LockOSThread() // the namespace is the thread's, until the program has it
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w: dovetail-mps needs the capability SYS_ADMIN", err)
	}
	// What is unmounted outside is so here, too, or it would stay busy for ever.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if s.Dir != "" {
		if err := show(s.Dir, s.Root, s.Dir); err != nil {
			return fmt.Errorf("show %s in the driver's root %s: %w", s.Dir, s.Root, err)
		}
	}
	if s.Shm != "" {
		if err := show(s.Shm, s.Root, "/dev/shm"); err != nil {
			return fmt.Errorf("show %s as /dev/shm in the driver's root %s: %w", s.Shm, s.Root, err)
		}
	}
	if err := unix.Chroot(s.Root); err != nil {
		return fmt.Errorf("enter the driver's root %s: %w", s.Root, err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	unix.Umask(0o022)
	return fmt.Errorf("run %s: %w", s.Command[0], unix.Exec(s.Command[0], s.Command, os.Environ()))
}

// show binds the directory source on path below root. Nothing is made in root's own
// directories: where some are missing, the last that exists is replaced by a copy made
// of mounts.
func show(source, root, path string) error {
	target := filepath.Join(root, path)
	if same(source, target) {
		return nil
	}
	there, err := deepest(root, path)
	if err != nil {
		return err
	}
	if there != target {
		if err := replace(there); err != nil {
			return err
		}
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
	}
	return bind(source, target)
}

// deepest is the last directory on the way to path that exists below root.
func deepest(root, path string) (string, error) {
	at := filepath.Clean(root)
	rest, err := filepath.Rel("/", path)
	if err != nil {
		return "", err
	}
	for {
		first, after, more := strings.Cut(rest, "/")
		next := filepath.Join(at, first)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return at, nil
		case err != nil:
			return "", err
		case !info.IsDir(): // a link could lead out of root
			return "", fmt.Errorf("%s is no directory", next)
		}
		if at = next; !more {
			return at, nil
		}
		rest = after
	}
}

// replace mounts an empty directory over dir, and all that dir has into it.
func replace(dir string) error {
	before, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer before.Close()
	entries, err := before.ReadDir(-1)
	if err != nil {
		return err
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, "mode=0755,size=1m"); err != nil {
		return err
	}
	for _, e := range entries {
		source, target := fmt.Sprintf("/proc/self/fd/%d/%s", before.Fd(), e.Name()), filepath.Join(dir, e.Name())
		if err := again(e, source, target); err != nil && !errors.Is(err, os.ErrNotExist) { // gone just now
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	return nil
}

// again makes an entry of a directory once more, as the same file.
func again(e os.DirEntry, source, target string) error {
	switch {
	case e.Type()&os.ModeSymlink != 0:
		to, err := os.Readlink(source)
		if err != nil {
			return err
		}
		return os.Symlink(to, target)
	case e.IsDir():
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(target, nil, 0o600); err != nil {
			return err
		}
	}
	return bind(source, target)
}

func bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s on %s: %w", source, target, err)
	}
	return nil
}

func same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
