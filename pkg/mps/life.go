package mps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/mps/process"
)

const (
	startPatience = 20 * time.Second // for a control daemon, less than the kubelet's
	quitPatience  = 3 * time.Second  // between asking it to end and SIGTERM
	termPatience  = time.Second      // between that and SIGKILL
	killPatience  = 5 * time.Second  // for what was killed; the driver can hold it up

	firstWait = 100 * time.Millisecond // before a daemon that dies at once is started again
	lastWait  = 30 * time.Second
	wellAfter = time.Minute // it has lived long enough to be started again at once
)

// start starts a set's daemon where it does not run. The set's lock is held.
func (m *Manager) start(ctx context.Context, s *set) (hardware.MPSDaemon, error) {
	if answer := s.answer.Load(); answer != nil { // meanwhile
		return *answer, nil
	}
	if s.record.Protocol != 0 {
		err := m.again(ctx, s)
		return s.place(), err
	}
	protocol, err := m.protocol(ctx, s.devices)
	if err == nil {
		s.record = record{BootID: m.options.BootID, Devices: s.devices, Protocol: protocol}
		err = m.begin(ctx, s)
	}
	if err != nil {
		err = errors.Join(err, removeAll(s.dir))
		s.gone, s.failed = true, err
		m.forget(s)
	}
	return s.place(), err
}

// again starts the daemon of a set whose daemon has died, and tells so. The set's lock
// is held.
func (m *Manager) again(ctx context.Context, s *set) error {
	if err := errors.Join(killAll(s.dir), s.sweepPipe()); err != nil {
		return err
	}
	if err := m.begin(ctx, s); err != nil {
		return err
	}
	m.options.Log.Warn("Started an MPS control daemon again", "devices", s.devices)
	m.events.emit(hardware.MPSEvent{
		Devices: s.devices, Kind: hardware.MPSRestarted,
		Message: "the MPS control daemon, or its server, had died and was started again: work of its clients is lost, and their containers must start anew",
	})
	return nil
}

// begin starts the daemon with all its namespaces; after an error nothing of it runs.
// The set's lock is held.
func (m *Manager) begin(ctx context.Context, s *set) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	s.record.Daemon, s.record.Server = process.ID{}, process.ID{}
	if err := s.makeDirs(); err != nil {
		return fmt.Errorf("directories of MPS over %q: %w", s.devices, err)
	}
	if err := s.record.write(s.dir); err != nil {
		return fmt.Errorf("record of MPS over %q: %w", s.devices, err)
	}
	daemon, err := m.launch(ctx, s)
	if err != nil {
		return err
	}
	var server *process.Process
	defer func() {
		if err != nil {
			_ = daemon.Close()
			if server != nil {
				_ = server.Close()
			}
			s.leave()
			s.unlead()
			err = errors.Join(err, killAll(s.dir))
		}
	}()
	if s.record.Protocol == 3 {
		if server, err = m.makeServer(ctx, s); err != nil {
			return err
		}
		if server != nil {
			s.record.Server = server.ID
		}
	}
	s.record.Daemon = daemon.ID
	if err := errors.Join(s.lead(daemon.ID), s.record.write(s.dir)); err != nil {
		return fmt.Errorf("record of MPS over %q: %w", s.devices, err)
	}
	m.options.Log.Info("Started an MPS control daemon", "devices", s.devices, "process", daemon.ID.PID, "protocol", s.record.Protocol)
	m.own(s, daemon, server)
	s.logs = serverLogs(s.log()) // nothing has happened yet
	return nil
}

// own takes a daemon that runs as the set's, and its server, if that is known; and
// watches them. Of protocol 3, a server's end is its daemon's, which has no other and
// makes none by itself.
func (m *Manager) own(s *set, daemon, server *process.Process) {
	s.letGo()
	place := s.place()
	s.daemon, s.server, s.logs, s.fault, s.since = daemon, server, nil, false, time.Now()
	if err := s.enter(daemon); err != nil {
		m.options.Log.Warn("An MPS control daemon's root cannot be opened: each command for it is launched as it was", "devices", s.devices, "err", err)
	}
	s.answer.Store(&place)
	var serverEnded <-chan struct{} // nil: never
	if server != nil {
		serverEnded = server.Ended()
	}
	m.watchers.Go(func() {
		select {
		case <-daemon.Ended():
			m.died(s, daemon)
		case <-serverEnded:
			m.died(s, daemon)
		case <-m.ctx.Done():
		}
	})
}

// died is called at the end of a daemon or its server, wanted or not.
func (m *Manager) died(s *set, daemon *process.Process) {
	unlock, err := s.acquire(m.ctx)
	if err != nil {
		return
	}
	if s.daemon != daemon || s.record.Stopping {
		unlock()
		return
	}
	m.options.Log.Warn("An MPS control daemon, or its server, has ended", "devices", s.devices, "process", daemon.ID.PID)
	s.letGo()
	s.unlead()
	if time.Since(s.since) > wellAfter {
		s.wait = 0
	}
	unlock()
	m.revive(s)
}

// revive starts a daemon that has died again, and goes on until it runs.
func (m *Manager) revive(s *set) {
	for told := false; ; told = true {
		unlock, err := s.acquire(m.ctx)
		if err != nil {
			return
		}
		wait := s.wait
		s.wait = min(max(2*wait, firstWait), lastWait)
		unlock()
		select {
		case <-time.After(wait):
		case <-m.ctx.Done():
			return
		}
		if unlock, err = s.acquire(m.ctx); err != nil {
			return
		}
		if s.gone || s.record.Stopping || s.answer.Load() != nil {
			unlock()
			return
		}
		err = m.again(m.ctx, s)
		unlock()
		if err == nil || m.ctx.Err() != nil {
			return
		}
		m.options.Log.Error("Cannot start an MPS control daemon again", "devices", s.devices, "err", err)
		if !told {
			m.events.emit(hardware.MPSEvent{
				Devices: s.devices, Kind: hardware.MPSFailed,
				Message: fmt.Sprintf("the MPS control daemon has died and cannot be started again: %v; it is tried further", err),
			})
		}
	}
}

// stop ends a set: politely, then not. The set's lock is held.
func (m *Manager) stop(ctx context.Context, s *set) error {
	s.answer.Store(nil)
	s.record.Stopping = true
	if err := s.record.write(s.dir); err != nil { // as on a full disk: then a crash now starts it again
		m.options.Log.Error("Cannot record that an MPS control daemon is to stop", "devices", s.devices, "err", err)
	}
	if s.daemon != nil {
		m.quit(ctx, s)
		if !ended(s.daemon, quitPatience) {
			_ = s.daemon.Signal(unix.SIGTERM) // what is not heard is followed by SIGKILL
			ended(s.daemon, termPatience)
		}
	}
	if err := removeAll(s.dir); err != nil {
		return err
	}
	s.letGo()
	s.gone = true
	m.forget(s)
	m.options.Log.Info("Stopped an MPS control daemon", "devices", s.devices)
	return nil
}

func ended(p *process.Process, patience time.Duration) bool {
	select {
	case <-p.Ended():
		return true
	case <-time.After(patience):
		return false
	}
}
