package tree

import (
	_ "embed"
	"os"
	"path/filepath"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// LibraryDir is where the driver's libraries are, below the root.
const LibraryDir = "usr/lib64"

// KeptLibrary is the library's own place, below the root, from which it is
// installed again after the driver was missing.
const KeptLibrary = simulator.StateDir + "/libnvidia-ml.so"

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
		if _, err := os.Stat(w.path(KeptLibrary)); err == nil {
			name := filepath.Join(LibraryDir, "libnvidia-ml.so")
			w.hardLink(name+"."+version, KeptLibrary)
			w.link(name+".1", "libnvidia-ml.so."+version)
			keep[name+"."+version], keep[name+".1"] = true, true
		} else {
			w.note("no NVML in %s: build one from cmd/libnvidia-ml and give it as the library", w.path(LibraryDir))
		}
		w.file("usr/bin/nvidia-smi", nvidiaSMI, 0o755)
	} else {
		w.remove("usr/bin/nvidia-smi")
	}
	w.removeMatching(LibraryDir+"/libnvidia-*.so.*", keep)
	w.removeMatching(LibraryDir+"/libcuda.so.*", keep)
}

// keep copies the library to its own place. A copy it must be: whoever rebuilds
// the original in place would change it under the processes that have it open.
func (w *writer) keep(library string) {
	data, err := os.ReadFile(library)
	if w.check(err) {
		w.file(KeptLibrary, string(data), 0o755)
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
	os.Remove(temporary) // Link says so if it is still there
	if w.check(os.Link(w.path(target), temporary)) && w.check(os.Rename(temporary, path)) {
		w.report.Written++
	}
}

func same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
