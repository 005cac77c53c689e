// Package simulator is the one core of a simulated machine: what is in it, what
// state it is in, and what can go wrong with it. Two faces show it to the
// driver: GPUs, Sharing and NICs in this package, within the process, and outside
// the tree's sysfs and cmd/libnvidia-ml, a shared library that unmodified go-nvml opens, with
// cmd/dovetail-sim-tools, the programs of NVIDIA's driver.
//
// A simulated machine is a root directory R. Its state lies in
// R/var/lib/dovetail-sim, outlives every process and may be changed by any of
// them; the tree around it (sys, proc, dev, the driver's files) is for
// pkg/simulator/tree to render. Since the shared library links this package, it
// imports nothing heavy: no YAML, nothing of Kubernetes.
package simulator

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// StateDir is where the state lies, below the machine's root.
const StateDir = "var/lib/dovetail-sim"

// RootVariable is an environment variable that names the root of the machine
// for libnvidia-ml, in place of the library's own place. It is for tests, which
// use several machines in one process.
const RootVariable = "DOVETAIL_SIM_ROOT"

const (
	stateFile = "state.json"
	lockFile  = "lock"
)

// Machine is a simulated machine. Its methods may be called from any goroutine,
// and other processes may use the same machine at the same time.
type Machine struct {
	root  string
	state string // the state's file
	cache atomic.Pointer[snapshot]
	// follow is Follow's, followNICs FollowNICs'; nil: nobody's.
	follow     func(*State, GPU)
	followNICs func(*State)
}

func at(root string) *Machine {
	return &Machine{root: root, state: filepath.Join(root, StateDir, stateFile)}
}

// Open opens the machine at root; failure.Absent where there is none.
func Open(root string) (*Machine, error) {
	m := at(root)
	if _, err := m.State(); err != nil {
		return nil, err
	}
	return m, nil
}

// Find opens the machine that has path somewhere below its root.
func Find(path string) (*Machine, error) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		m, err := Open(dir)
		if err == nil || !errors.Is(err, failure.Absent) {
			return m, err
		}
		if dir == filepath.Dir(dir) {
			return nil, failure.New(failure.Absent, "%s does not lie in a simulated machine: no directory above it has %s/%s",
				path, StateDir, stateFile)
		}
	}
}

// Create makes the machine that spec describes at root, or leaves it as it is
// where the same machine is there already. Another machine there is replaced.
func Create(root string, spec Spec) (m *Machine, created bool, err error) {
	if absolute, err := filepath.Abs(root); err != nil || absolute == "/" {
		return nil, false, failure.New(failure.Invalid,
			"root %q: a simulated machine there would overwrite this computer's own files: give a directory of its own", root)
	}
	m = at(root)
	err = m.locked(func() error {
		old, err := m.State()
		if err == nil && old.Spec.equal(&spec) {
			return nil
		}
		if err != nil && !errors.Is(err, failure.Absent) && !errors.Is(err, failure.Corrupt) {
			return err
		}
		created = true
		return m.write(newState(spec))
	})
	if err != nil {
		return nil, false, err
	}
	return m, created, nil
}

// Follow makes every change of one GPU through m call f before it returns, while
// nobody else can change the machine; tree.Follow uses it. It is to be called before
// m is used from several goroutines.
func (m *Machine) Follow(f func(*State, GPU)) { m.follow = f }

// FollowNICs is Follow for changes of the machine's NICs.
func (m *Machine) FollowNICs(f func(*State)) { m.followNICs = f }

// Root is the machine's root directory.
func (m *Machine) Root() string { return m.root }

// path returns a file of the state.
func (m *Machine) path(name string) string { return filepath.Join(m.root, StateDir, name) }

// classify turns an error of the file system into one of the project's classes.
func (m *Machine) classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return failure.New(failure.Absent, "no simulated machine at %s: make one with dovetail-sim create: %w", m.root, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return failure.New(failure.Unsupported, "the simulated machine at %s is %w from here: %w", m.root, ErrReadOnly, err)
	default:
		return err
	}
}
