package simulator

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// Failure is how the next calls of an NVML function on a GPU, or of hardware.NICs on a
// NIC, end: they change nothing.
type Failure struct {
	Times int         `json:"times"`
	Error FailureKind `json:"error"`
}

// FailureKind is what a failing call answers.
type FailureKind string

// Kinds of failure.
const (
	FailureUnknown               FailureKind = "unknown"                // an error of no class
	FailureInUse                 FailureKind = "in-use"                 // failure.Busy
	FailureInsufficientResources FailureKind = "insufficient-resources" // failure.Conflict
	FailureLost                  FailureKind = "lost"                   // the device falls off the bus in the middle of the call
	FailureNoPermission          FailureKind = "no-permission"          // ErrNoPermission: what an agent without privileges is told
)

// ErrNoPermission is wrapped by the error of a call that the driver does not permit.
var ErrNoPermission = errors.New("not permitted")

// FailureKinds lists all of them.
func FailureKinds() []FailureKind {
	return []FailureKind{FailureUnknown, FailureInUse, FailureInsufficientResources, FailureLost, FailureNoPermission}
}

// Fail makes the next calls of an NVML function on a GPU fail, or none with 0 times.
// The call is named as for Slow. In the face within the process Describe heeds no
// failure but FailureNoPermission, and counts none: its calls have no names. A NIC's
// calls are CallNICs.
func (m *Machine) Fail(device, call string, f Failure) error {
	if f.Times < 0 {
		return failure.New(failure.Invalid, "%s is to fail %d times: give 0 or more", call, f.Times)
	}
	if !slices.Contains(FailureKinds(), f.Error) {
		return failure.New(failure.Invalid, "error %q is unknown: use one of %q", f.Error, FailureKinds())
	}
	return m.Update(func(s *State) error {
		t, err := s.trouble(device)
		if err == nil {
			t.fail(call, f)
		}
		return err
	})
}

// Call is for NVML calls that change nothing in the state: nil where the call is to
// succeed. One that was asked to fail counts as made.
func (m *Machine) Call(gpu, call string) error {
	g, err := m.usable(gpu)
	if err != nil {
		return err
	}
	if _, ok := g.Failures[call]; !ok {
		return nil
	}
	return m.call(gpu, call, func(*State, GPU) error { return nil })
}

// call is an NVML call that changes a GPU, which fails where that was asked for.
func (m *Machine) call(gpu, call string, change func(*State, GPU) error) error {
	var failed error
	err := m.update(gpu, func(s *State, _ GPU) error {
		g, err := s.usable(gpu)
		if err != nil {
			return err
		}
		if failed = s.fail(g, call); failed != nil {
			return nil //nolint:nilerr // so that it is written
		}
		return change(s, g)
	})
	if err != nil {
		return err
	}
	return failed
}

// fail is the error of a call that is to fail.
func (s *State) fail(g GPU, call string) error {
	f, ok := g.next(call)
	if !ok {
		return nil
	}
	if f.Error == FailureLost {
		s.lose(g)
	}
	return f.of("GPU "+g.Spec.UUID, call)
}

// of is the error of a device's call.
func (f Failure) of(device, call string) error {
	message := fmt.Sprintf("%s: %s failed, as was asked for: %s", device, call, f.Error)
	switch f.Error {
	case FailureInUse:
		return failure.New(failure.Busy, "%s", message)
	case FailureInsufficientResources:
		return failure.New(failure.Conflict, "%s", message)
	case FailureLost:
		return failure.New(failure.Absent, "%s", message)
	case FailureNoPermission:
		return fmt.Errorf("%s: %w", message, ErrNoPermission)
	default:
		return fmt.Errorf("%s", message)
	}
}
