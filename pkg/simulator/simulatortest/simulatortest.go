// Package simulatortest makes simulated machines for tests.
//
// New is enough for most: its GPUs() is hardware.GPUs, within the process and
// without cgo. NewWithLibrary is for tests of what talks to a real NVML.
package simulatortest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/description"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
)

// Machine is a machine that goes away with its test.
type Machine struct {
	*simulator.Machine
	// Library is the path of the simulated NVML, after NewWithLibrary.
	Library string
	t       testing.TB
}

// New makes and renders a machine, by its name in demo/machines.
func New(t testing.TB, name string) *Machine {
	t.Helper()
	m := &Machine{Machine: create(t, descriptionOf(t, name)), t: t}
	m.Sync()
	return m
}

// NewWithLibrary is New with libnvidia-ml in the machine. One process sees one
// such machine at a time: the last one made.
func NewWithLibrary(t testing.TB, name string) *Machine {
	t.Helper()
	return DescribedWithLibrary(t, descriptionOf(t, name))
}

// DescribedWithLibrary is NewWithLibrary of a machine by its description, in YAML.
func DescribedWithLibrary(t testing.TB, data []byte) *Machine {
	t.Helper()
	m := &Machine{Machine: create(t, data), Library: Library(t), t: t}
	install(t, m.Library, filepath.Join(m.Root(), tree.KeptLibrary))
	m.Sync()
	t.Setenv(simulator.RootVariable, m.Root()) // it forbids parallel tests, rightly
	return m
}

// InstallTools installs the driver's programs, nvidia-smi and MPS.
func (m *Machine) InstallTools() {
	m.t.Helper()
	install(m.t, Tools(m.t), filepath.Join(m.Root(), tree.KeptTools))
	m.Sync()
}

// Sync renders the machine again, after a change to its driver or a reboot.
func (m *Machine) Sync() {
	m.t.Helper()
	if _, err := tree.Sync(m.Machine, tree.Built{}); err != nil {
		m.t.Fatal(err)
	}
}

// Spec is the machine as it is described.
func (m *Machine) Spec() simulator.Spec {
	m.t.Helper()
	state, err := m.State()
	if err != nil {
		m.t.Fatal(err)
	}
	return state.Spec
}

func descriptionOf(t testing.TB, name string) []byte {
	t.Helper()
	data, err := machines.Description(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func create(t testing.TB, data []byte) *simulator.Machine {
	t.Helper()
	spec, err := description.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := simulator.Create(t.TempDir(), spec)
	if err != nil {
		t.Fatal(err)
	}
	tree.Follow(m)
	return m
}

// install gives what was built a second name, so that a process which opens one
// machine after the other loads it once; or copies it to another file system.
func install(t testing.TB, library, to string) {
	t.Helper()
	if os.Link(library, to) == nil {
		return
	}
	if err := CopyProgram(library, to); err != nil {
		t.Fatal(err)
	}
}
