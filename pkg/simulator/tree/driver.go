package tree

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// LibraryDir is where the driver's libraries are, below the root.
const LibraryDir = "usr/lib64"

// KeptLibrary and KeptTools are the own places of what was built, below the root,
// from which it is installed again after the driver was missing.
const (
	KeptLibrary = simulator.StateDir + "/libnvidia-ml.so"
	KeptTools   = simulator.StateDir + "/dovetail-sim-tools"
)

// tools are the names under which KeptTools is installed.
var tools = []string{"nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"}

// stubs are libraries that only have to exist and to say what they are called.
var stubs = []string{"libcuda.so", "libnvidia-cfg.so", "libnvidia-ptxjitcompiler.so"}

// driverFiles renders what the driver's installer leaves: libraries under their
// real names, which end in the driver's version, and programs.
func (w *writer) driverFiles(state *simulator.State, built Built) {
	w.keep(built.Library, KeptLibrary)
	w.keep(built.Tools, KeptTools)
	w.programs(state.Driver != simulator.DriverMissing)
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
	}
	w.removeMatching(LibraryDir+"/libnvidia-*.so.*", keep)
	w.removeMatching(LibraryDir+"/libcuda.so.*", keep)
}

// programs installs the driver's programs, or takes them away.
func (w *writer) programs(installed bool) {
	_, err := os.Stat(w.path(KeptTools))
	if installed && err != nil {
		w.note("no %s in %s: build one program for all from cmd/dovetail-sim-tools and give it as the tools",
			strings.Join(tools, ", "), w.path("usr/bin"))
	}
	for _, name := range tools {
		if installed && err == nil {
			w.hardLink("usr/bin/"+name, KeptTools)
		} else {
			w.remove("usr/bin/" + name)
		}
	}
}

// keep copies what was built to its own place. A copy it must be: whoever rebuilds
// the original in place would change it under the processes that have it open.
func (w *writer) keep(built, place string) {
	if built == "" {
		return
	}
	data, err := os.ReadFile(built)
	if w.check(err) {
		w.file(place, string(data), 0o755)
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
