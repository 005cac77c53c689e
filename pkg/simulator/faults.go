package simulator

import (
	"slices"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// xidFellOffTheBus is what the driver reports of a GPU that it lost (NVIDIA,
// "Xid Errors").
const xidFellOffTheBus = 79

// update changes one GPU, named by index, UUID or PCI address.
func (m *Machine) update(name string, change func(*State, GPU) error) error {
	return m.Update(func(s *State) error {
		g, err := s.Find(name)
		if err != nil {
			return err
		}
		return change(s, g)
	})
}

// Inject gives a GPU a fault. A lost one also raises Xid 79, as it does in life.
func (m *Machine) Inject(gpu string, fault Fault) error {
	return m.update(gpu, func(s *State, g GPU) error {
		if g.Has(fault) {
			return nil
		}
		g.Faults = append(g.Faults, fault)
		if fault == FaultLost {
			s.raise(g, xidFellOffTheBus)
		}
		return nil
	})
}

// Restore takes a fault away, as a technician would.
func (m *Machine) Restore(gpu string, fault Fault) error {
	return m.update(gpu, func(_ *State, g GPU) error {
		g.Faults = slices.DeleteFunc(g.Faults, func(f Fault) bool { return f == fault })
		return nil
	})
}

// RaiseXid reports an Xid of a GPU. After a critical one the GPU asks to be
// reset.
func (m *Machine) RaiseXid(gpu string, xid uint64) error {
	return m.update(gpu, func(s *State, g GPU) error {
		s.raise(g, xid)
		if (hardware.Event{Xid: xid}).Critical() {
			s.setRecovery(g, RecoveryGPUReset)
		}
		return nil
	})
}

func (s *State) setRecovery(g GPU, to Recovery) {
	if g.Recovery != to && g.ReportsRecovery {
		s.raise(g, 0)
	}
	g.Recovery = to
}

func (s *State) raise(g GPU, xid uint64) {
	s.Events = append(s.Events, Event{Sequence: s.NextEvent, UUID: g.Spec.UUID, Xid: xid})
	s.NextEvent++
	if extra := len(s.Events) - eventsKept; extra > 0 {
		s.Events = slices.Delete(s.Events, 0, extra)
	}
}

// Reset resets a GPU: its pending MIG mode comes into force, and what it asked
// for is forgotten. A lost GPU cannot be reset.
func (m *Machine) Reset(gpu string) error {
	return m.update(gpu, func(s *State, g GPU) error {
		if g.Has(FaultLost) {
			return failure.New(failure.Absent, "GPU %s fell off the bus and cannot be reset: restore it first", g.Spec.Address)
		}
		g.Faults = slices.DeleteFunc(g.Faults, func(f Fault) bool { return f == FaultResetRequired })
		s.setRecovery(g, RecoveryNone)
		g.MIGEnabled = g.MIGPending
		return nil
	})
}

// Slow makes an NVML call on a GPU take longer, or as usual with 0. The call is
// named as in nvml.h without its version ("nvmlDeviceGetName"), or AnyCall.
func (m *Machine) Slow(gpu, call string, by time.Duration) error {
	if by < 0 {
		return failure.New(failure.Invalid, "delay %v of %s is negative: give 0 or more", by, call)
	}
	return m.update(gpu, func(_ *State, g GPU) error {
		if by == 0 {
			delete(g.Delays, call)
			return nil
		}
		if g.Delays == nil {
			g.Delays = map[string]time.Duration{}
		}
		g.Delays[call] = by
		return nil
	})
}

// SetDriver loads the driver, or takes it away. Loading it forgets what a
// driver forgets. tree.Sync makes the files follow.
func (m *Machine) SetDriver(to Driver) error {
	return m.Update(func(s *State) error {
		if to == DriverLoaded && s.Driver != DriverLoaded {
			for i := range s.GPUs {
				s.GPUs[i].ComputeMode = machine.ComputeModeDefault
				s.GPUs[i].Recovery = RecoveryNone
			}
		}
		s.Driver = to
		return nil
	})
}

// Reboot gives the machine a new boot ID and puts every GPU back to what its
// description says. Delays and the driver's presence stay.
func (m *Machine) Reboot() error {
	return m.Update(func(s *State) error {
		before := s.GPUs
		s.boot()
		for i := range s.GPUs {
			s.GPUs[i].Delays = before[i].Delays
		}
		return nil
	})
}
