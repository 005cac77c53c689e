// Package tree renders a simulated machine as files below its root: what sysfs,
// proc and dev would show, and what the NVIDIA driver installs. The state is
// pkg/simulator's; this package only makes the files follow it.
package tree

import (
	"errors"
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Sync makes the files below the machine's root what its state says, and
// touches nothing that is right already. library is the shared library built
// from cmd/libnvidia-ml; empty means the one of an earlier Sync, or none.
func Sync(m *simulator.Machine, library string) (Report, error) {
	state, err := m.State()
	if err != nil {
		return Report{}, err
	}
	w := &writer{root: m.Root()}
	w.kernel(state)
	w.pci(state)
	w.driverFiles(state, library)
	w.devices(state)
	if err := errors.Join(w.errs...); err != nil {
		return Report{}, fmt.Errorf("rendering machine %s below %s: %w", state.Spec.Name, m.Root(), err)
	}
	return w.report, nil
}

// Report says what Sync did.
type Report struct {
	Written int // files, links and device nodes that were made or changed
	Removed int
	// Notes are for people: what could not be made, and how it could be.
	Notes []string
}
