package tree

import (
	_ "embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// LibraryDir is where the driver's libraries are, below the root.
const LibraryDir = "usr/lib64"

// keptLibrary is the library's own place, from which it is installed again
// after the driver was missing.
const keptLibrary = simulator.StateDir + "/libnvidia-ml.so"

//go:embed nvidia-smi.sh
var nvidiaSMI string

// stubs are libraries that only have to exist and to say what they are called.
var stubs = []string{"libcuda.so", "libnvidia-cfg.so", "libnvidia-ptxjitcompiler.so"}

// driverFiles renders what the driver's installer leaves: libraries under their
// real names, which end in the driver's version, and nvidia-smi.
func (w *writer) driverFiles(state *simulator.State, library string) {
	if library != "" {
		w.keep(library)
	}
	keep := map[string]bool{}
	if state.Driver != simulator.DriverMissing {
		version := state.Spec.Driver.Version
		for _, stub := range stubs {
			name := filepath.Join(LibraryDir, stub)
			w.file(name+"."+version, sharedObject(stub+".1"), 0o755)
			w.link(name+".1", stub+"."+version)
			keep[name+"."+version], keep[name+".1"] = true, true
		}
		if _, err := os.Stat(w.path(keptLibrary)); err == nil {
			name := filepath.Join(LibraryDir, "libnvidia-ml.so")
			w.hardLink(name+"."+version, keptLibrary)
			w.link(name+".1", "libnvidia-ml.so."+version)
			keep[name+"."+version], keep[name+".1"] = true, true
		}
		w.file("usr/bin/nvidia-smi", nvidiaSMI, 0o755)
	} else {
		w.remove("usr/bin/nvidia-smi")
	}
	w.removeMatching(LibraryDir+"/libnvidia-*.so.*", keep)
	w.removeMatching(LibraryDir+"/libcuda.so.*", keep)
}

// keep puts the library into its own place: as a second name of the same file
// where that can be, so that one process that opens several machines loads it
// once.
func (w *writer) keep(library string) {
	path := w.path(keptLibrary)
	if same(library, path) {
		return
	}
	temporary := path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.check(err)
		return
	}
	if os.Link(library, temporary) != nil && !w.check(copyFile(library, temporary)) {
		return
	}
	if w.check(os.Rename(temporary, path)) {
		w.report.Written++
	}
}

// hardLink makes name another name of target.
func (w *writer) hardLink(name, target string) {
	path := w.path(name)
	if same(path, w.path(target)) {
		return
	}
	if !w.check(os.MkdirAll(filepath.Dir(path), 0o755)) {
		return
	}
	temporary := path + ".new"
	os.Remove(temporary) //nolint:errcheck // Link says so if it is still there
	if w.check(os.Link(w.path(target), temporary)) && w.check(os.Rename(temporary, path)) {
		w.report.Written++
	}
}

func same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
