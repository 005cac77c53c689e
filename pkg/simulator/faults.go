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
	return m.Frozen(func(s *State) error {
		g, err := s.Find(name)
		if err != nil {
			return err
		}
		if err := change(s, g); err != nil {
			return err
		}
		if err := m.write(s); err != nil {
			return err
		}
		if m.follow != nil {
			m.follow(s, g)
		}
		return nil
	})
}

// Inject gives a GPU a fault. A lost one also raises Xid 79, as it does in life.
func (m *Machine) Inject(gpu string, fault Fault) error {
	return m.update(gpu, func(s *State, g GPU) error {
		switch {
		case g.Has(fault):
		case fault == FaultLost:
			s.lose(g)
		default:
			g.Faults = append(g.Faults, fault)
		}
		return nil
	})
}

// lose lets a GPU fall off the bus. Its partitions do not come back with it.
func (s *State) lose(g GPU) {
	g.Faults = append(g.Faults, FaultLost)
	g.ComputeMode = machine.ComputeModeDefault // as after the reset that brings it back
	g.forgetPartitions()
	s.raise(g, Event{Xid: xidFellOffTheBus})
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
		s.raise(g, Event{Xid: xid})
		if (hardware.Event{Xid: xid}).Critical() {
			s.setRecovery(g, RecoveryGPUReset)
		}
		return nil
	})
}

func (s *State) setRecovery(g GPU, to Recovery) {
	if g.Recovery != to && g.ReportsRecovery {
		s.raise(g, Event{})
	}
	g.Recovery = to
}

// raiseMIG reports that the GPU's MIG mode or instances changed.
func (s *State) raiseMIG(g GPU) { s.raise(g, Event{MIG: true}) }

func (s *State) raise(g GPU, event Event) {
	event.Sequence, event.UUID = s.NextEvent, g.Spec.UUID
	s.Events = append(s.Events, event)
	s.NextEvent++
	if extra := len(s.Events) - eventsKept; extra > 0 {
		s.Events = slices.Delete(s.Events, 0, extra)
	}
}

// Reset resets a GPU: its pending MIG mode comes into force, without instances, and
// what it asked for is forgotten. A lost GPU cannot be reset, nor one that somebody
// holds.
func (m *Machine) Reset(gpu string) error {
	return m.update(gpu, func(s *State, g GPU) error {
		if g.Has(FaultLost) {
			return failure.New(failure.Absent, "GPU %s fell off the bus and cannot be reset: restore it first", g.Spec.Address)
		}
		if m.held(s, g.holdFile(), g.holdFile()+"-*") {
			return failure.New(failure.Busy, "GPU %s is in use: stop what uses it before it is reset", g.Spec.UUID)
		}
		g.Faults = slices.DeleteFunc(g.Faults, func(f Fault) bool { return f == FaultResetRequired })
		s.setRecovery(g, RecoveryNone)
		if g.MIGEnabled || g.MIGPending {
			g.setMIG(g.MIGPending)
			s.raiseMIG(g)
		}
		return nil
	})
}

// Slow makes an NVML call on a GPU take longer, or as usual with 0, also one that is
// under way. The call is named as in nvml.h without its version ("nvmlDeviceGetName"),
// or AnyCall; a NIC's calls are CallNICs.
func (m *Machine) Slow(device, call string, by time.Duration) error {
	if by < 0 {
		return failure.New(failure.Invalid, "delay %v of %s is negative: give 0 or more", by, call)
	}
	return m.Update(func(s *State) error {
		t, err := s.trouble(device)
		if err == nil {
			t.slow(call, by)
		}
		return err
	})
}

// SetDriver loads the driver, or takes it away. Loading it forgets what a
// driver forgets, partitions too. tree.Sync makes the files follow.
func (m *Machine) SetDriver(to Driver) error {
	return m.Update(func(s *State) error {
		if len(s.GPUs) == 0 && to != DriverMissing {
			return failure.New(failure.Unsupported, "machine %q has no GPUs: a driver of theirs cannot be %s", s.Spec.Name, to)
		}
		if to == DriverLoaded && s.Driver != DriverLoaded {
			for i := range s.GPUs {
				g := s.GPU(i)
				g.ComputeMode = machine.ComputeModeDefault
				g.Recovery = RecoveryNone
				g.TimeSlice, g.MemoryLimits = "", nil
				g.forgetPartitions()
			}
		}
		s.Driver = to
		return nil
	})
}

// Reboot gives the machine a new boot ID and puts every GPU and NIC back to what its
// description says. Delays, failures to come and the driver's presence stay, and the
// MIG mode of models that want a reset for it.
func (m *Machine) Reboot() error {
	return m.Update(func(s *State) error {
		before, nics := s.GPUs, s.NICs
		s.boot(before)
		for i := range s.GPUs {
			s.GPUs[i].Trouble = before[i].Trouble
		}
		for i := range s.NICs {
			s.NICs[i].Trouble = nics[i].Trouble
		}
		return nil
	})
}
