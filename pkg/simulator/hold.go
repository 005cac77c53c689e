package simulator

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// holdsDir has a directory for each boot, with a file for each thing that was ever
// held. Who holds it has a shared lock on it (flock(2)), which ends with the process.
const holdsDir = "holds"

// holdFile names the file of a GPU, or of its GPU instance, or of a compute instance.
func (g GPU) holdFile(instance ...int) string {
	name := fmt.Sprintf("gpu%d", g.Spec.Minor)
	for i, id := range instance {
		name += "-" + [...]string{"gi", "ci"}[i] + fmt.Sprint(id)
	}
	return name
}

// held says whether somebody holds one of the files; the state's lock is held.
func (m *Machine) held(s *State, patterns ...string) bool {
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(m.path(holdsDir), s.BootID, pattern))
		if err != nil {
			panic(err) // the pattern is one of holdFile's
		}
		for _, file := range files {
			if locked(file) {
				return true
			}
		}
	}
	return false
}

func locked(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer unlock(f)
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == syscall.EWOULDBLOCK
}

// unlock closes a file, too. A child that another goroutine is just starting may have it
// open for a moment longer, and would keep the lock.
func unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // of a device node, which is open as a path, it fails
	f.Close()
}

// Hold is something that is held open.
type Hold struct {
	// Missing are device nodes that could not be opened, so that nothing shows who
	// holds it.
	Missing []string
	files   []*os.File
}

// Release ends the hold. So does the end of the process.
func (h *Hold) Release() {
	for _, f := range h.files {
		unlock(f)
	}
}

// Hold opens a GPU as a process does that looks at it, or its GPU instance with that
// ID, or that one's compute instance. What is held cannot be destroyed, and a GPU of
// which anything is held not be reset, nor its MIG mode be switched.
func (m *Machine) Hold(gpu string, instance ...int) (*Hold, error) {
	if len(instance) > 2 {
		return nil, failure.New(failure.Invalid, "instance %v: give a GPU instance's ID, and that of one of its compute instances", instance)
	}
	h := &Hold{}
	err := m.Frozen(func(s *State) error {
		g, err := s.usable(gpu)
		if err != nil {
			return err
		}
		nodes, err := g.Nodes(instance...)
		if err != nil {
			return err
		}
		if err := h.lock(filepath.Join(m.path(holdsDir), s.BootID, g.holdFile(instance...))); err != nil {
			return m.classify(err)
		}
		for _, node := range nodes {
			h.open(filepath.Join(m.root, node))
		}
		return nil
	})
	if err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

func (h *Hold) lock(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	h.files = append(h.files, f)
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return &os.PathError{Op: "flock", Path: file, Err: err}
	}
	return nil
}

// open opens a device node as a path: no driver is behind it.
func (h *Hold) open(node string) {
	fd, err := unix.Open(node, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		h.Missing = append(h.Missing, node)
		return
	}
	h.files = append(h.files, os.NewFile(uintptr(fd), node))
}
