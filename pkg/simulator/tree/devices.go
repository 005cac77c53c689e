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
		nodes := []node{
			{"dev/nvidiactl", majorNVIDIA, 255}, {"dev/nvidia-modeset", majorNVIDIA, 254},
			{"dev/nvidia-uvm", majorUVM, 0}, {"dev/nvidia-uvm-tools", majorUVM, 1},
			{simulator.CapabilityNode(1), majorCaps, 1}, {simulator.CapabilityNode(2), majorCaps, 2},
		}
		for i := range state.GPUs {
			g := state.GPU(i)
			nodes = append(nodes, node{fmt.Sprintf("dev/nvidia%d", g.Spec.Minor), majorNVIDIA, g.Spec.Minor})
			nodes = append(nodes, capabilityNodes(g)...)
			w.removeOldNodes(g)
		}
		keep["dev/nvidia-caps"] = true
		for _, n := range nodes {
			keep[n.name] = true
		}
		w.nodes(nodes)
	}
	w.removeMatching("dev/nvidia*", keep)
}

// node is a character device, below the root.
type node struct {
	name         string
	major, minor int
}

// nodes makes device nodes, as far as that is permitted.
func (w *writer) nodes(nodes []node) {
	for _, n := range nodes {
		if err := w.node(n); errors.Is(err, fs.ErrPermission) {
			w.note("no device nodes in %s: mknod needs root (CAP_MKNOD), and a file system that allows them; "+
				"containers cannot be given what they are of", w.path("dev"))
			return
		} else if !w.check(err) {
			return
		}
	}
}

// node makes one character device that everybody may open.
func (w *writer) node(n node) error {
	path := w.path(n.name)
	want := unix.Mkdev(uint32(n.major), uint32(n.minor))
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
