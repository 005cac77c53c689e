// Package tree renders a simulated machine as files below its root: what sysfs,
// proc and dev would show, and what the NVIDIA driver installs. The state is
// pkg/simulator's; this package only makes the files follow it.
package tree

import (
	"errors"
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Built are files that Sync installs as the driver's own. An empty one means that of
// an earlier Sync, or none.
type Built struct {
	// Library is the shared library built from cmd/libnvidia-ml.
	Library string
	// Tools is the program built from cmd/dovetail-sim-tools.
	Tools string
}

// Sync makes the files below the machine's root what its state says, and
// touches nothing that is right already.
func Sync(m *simulator.Machine, built Built) (Report, error) {
	w := &writer{root: m.Root()}
	err := m.Frozen(func(state *simulator.State) error {
		w.kernel(state)
		w.pci(state)
		w.network(state)
		w.driverFiles(state, built)
		w.devices(state)
		if err := errors.Join(w.errs...); err != nil {
			return fmt.Errorf("rendering machine %s below %s: %w", state.Spec.Name, m.Root(), err)
		}
		return nil
	})
	if err != nil {
		return Report{}, err
	}
	return w.report, nil
}

// Follow makes the files of a GPU's instances, and of NICs, follow each change through m
// at once.
// What cannot be written from here, as in a container, is left for Sync to report: the
// change itself has been made.
func Follow(m *simulator.Machine) {
	m.Follow(func(state *simulator.State, g simulator.GPU) {
		if state.Driver != simulator.DriverLoaded {
			return
		}
		w := &writer{root: m.Root()}
		w.instances(g)
		w.nodes(capabilityNodes(g))
		w.removeOldNodes(g)
	})
	m.FollowNICs(func(state *simulator.State) {
		w := &writer{root: m.Root()}
		w.pci(state)
		w.network(state)
	})
}

// Report says what Sync did.
type Report struct {
	Written int // files, links and device nodes that were made or changed
	Removed int
	// Notes are for people: what could not be made, and how it could be.
	Notes []string
}
