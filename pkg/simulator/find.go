package simulator

import (
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Find returns the GPU that name means: an index, a UUID or a PCI address.
func (s *State) Find(name string) (GPU, error) {
	index, err := strconv.Atoi(name)
	isIndex := err == nil
	address, err := machine.ParseAddress(name)
	isAddress := err == nil
	for i, g := range s.Spec.GPUs {
		if isIndex && index == i || isAddress && address == g.Address || strings.EqualFold(name, g.UUID) {
			return s.GPU(i), nil
		}
	}
	return GPU{}, failure.New(failure.Absent,
		"machine %q has no GPU %q: name one by index (0 to %d), UUID or PCI address", s.Spec.Name, name, len(s.Spec.GPUs)-1)
}

// loaded is an error unless the driver is.
func (s *State) loaded() error {
	switch s.Driver {
	case DriverLoaded:
		return nil
	case DriverMissing:
		return failure.New(failure.Unreachable, "NVML cannot be opened: install the NVIDIA driver")
	default:
		return failure.New(failure.Absent, "the NVIDIA driver is not loaded: load its kernel module")
	}
}

// usable returns a GPU that answers now.
func (m *Machine) usable(name string) (GPU, error) {
	state, err := m.State()
	if err != nil {
		return GPU{}, err
	}
	return state.usable(name)
}

// usable is Machine.usable in this state.
func (s *State) usable(name string) (GPU, error) {
	if err := s.loaded(); err != nil {
		return GPU{}, err
	}
	g, err := s.Find(name)
	switch {
	case err != nil:
		return GPU{}, err
	case g.Has(FaultLost):
		return GPU{}, failure.New(failure.Absent, "GPU %s fell off the bus: reboot the node", name)
	case g.Has(FaultResetRequired):
		return GPU{}, failure.New(failure.Busy, "GPU %s must be reset: stop what uses it, then run nvidia-smi --gpu-reset", name)
	}
	return g, nil
}
