package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// devices renders dev. A machine whose driver is not loaded has no nodes, like
// a node that has just been set up.
func (w *writer) devices(state *simulator.State) {
	if !w.check(os.MkdirAll(w.path("dev"), 0o755)) {
		return
	}
	keep := map[string]bool{}
	if state.Driver == simulator.DriverLoaded {
		nodes := [][3]any{
			{"nvidiactl", majorNVIDIA, 255}, {"nvidia-modeset", majorNVIDIA, 254},
			{"nvidia-uvm", majorUVM, 0}, {"nvidia-uvm-tools", majorUVM, 1},
			{"nvidia-caps/nvidia-cap1", majorCaps, 1}, {"nvidia-caps/nvidia-cap2", majorCaps, 2},
		}
		for _, g := range state.Spec.GPUs {
			nodes = append(nodes, [3]any{fmt.Sprintf("nvidia%d", g.Minor), majorNVIDIA, g.Minor})
		}
		keep["dev/nvidia-caps"] = true
		for _, node := range nodes {
			name := "dev/" + node[0].(string)
			keep[name] = true
			if err := w.node(name, node[1].(int), node[2].(int)); errors.Is(err, fs.ErrPermission) {
				w.note("no device nodes in %s: mknod needs root (CAP_MKNOD), and a file system that allows them; "+
					"containers cannot be given these GPUs", w.path("dev"))
				break
			} else if !w.check(err) {
				break
			}
		}
	}
	w.removeMatching("dev/nvidia*", keep)
}

// node makes one character device that everybody may open.
func (w *writer) node(name string, major, minor int) error {
	path := w.path(name)
	want := unix.Mkdev(uint32(major), uint32(minor))
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err == nil {
		if stat.Mode&unix.S_IFMT == unix.S_IFCHR && stat.Rdev == want {
			return nil
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(want)); err != nil {
		return &os.PathError{Op: "mknod", Path: path, Err: err}
	}
	w.report.Written++
	return os.Chmod(path, 0o666) // whatever the umask is
}
