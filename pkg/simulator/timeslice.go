package simulator

import (
	"cmp"
	"errors"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// TimeSliceOf is how long the GPU works for one process before it turns to the next.
func (g GPU) TimeSliceOf() machine.TimeSlice { return cmp.Or(g.TimeSlice, machine.TimeSliceDefault) }

// SetTimeSlice sets it. A reboot and a reload of the driver put it back.
func (m *Machine) SetTimeSlice(gpu string, to machine.TimeSlice) error {
	if !slices.Contains(machine.TimeSlices, to) {
		return failure.New(failure.Invalid, "GPU %s: time slice %q is unknown: use one of %q", gpu, to, machine.TimeSlices)
	}
	return m.call(gpu, CallSetTimeSlice, func(_ *State, g GPU) error {
		g.TimeSlice = to
		return nil
	})
}

// CountRun counts a start of a program. It is no error where the state is read-only.
func (m *Machine) CountRun(name string) error {
	err := m.Update(func(s *State) error {
		if s.Runs == nil {
			s.Runs = map[string]int{}
		}
		s.Runs[name]++
		return nil
	})
	if errors.Is(err, ErrReadOnly) {
		return nil
	}
	return err
}
