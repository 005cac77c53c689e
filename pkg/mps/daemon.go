package mps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/mps/process"
)

// errEnded: the control daemon has ended instead of serving.
var errEnded = errors.New("ended at once")

// launch starts the set's control daemon and waits until it answers. It is no part of
// this process's fate: it has a session of its own and writes to files alone.
func (m *Manager) launch(ctx context.Context, s *set) (*process.Process, error) {
	options := []string{"-f", "-p", "3", "-m"}
	if s.record.Protocol == 2 {
		options = []string{"-f", "-multiuser-server"}
	}
	daemon, err := m.launchWith(ctx, s, options)
	if !errors.Is(err, errEnded) || s.record.Protocol != 2 {
		return daemon, err
	}
	m.options.Log.Warn("An MPS control daemon has ended at once and is tried again", "devices", s.devices, "err", err)
	if daemon, err = m.launchWith(ctx, s, options); !errors.Is(err, errEnded) {
		return daemon, err // that was an accident
	}
	// It may be too old for the option; a try tells, whatever it has said.
	if daemon, err = m.launchWith(ctx, s, options[:1]); err == nil {
		m.options.Log.Warn("This driver's MPS serves one user at a time", "devices", s.devices)
	}
	return daemon, err
}

func (m *Manager) launchWith(ctx context.Context, s *set, options []string) (_ *process.Process, err error) {
	root, err := os.OpenRoot(s.log())
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	output, err := root.OpenFile("output.log", os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }()
	command, err := m.launched(context.WithoutCancel(ctx), s, controlProgram, options...)
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, err
	}
	daemon, err := process.Open(command.Process.Pid)
	go func() { _ = command.Wait() }() // so that it is no zombie, while it is ours
	if err == nil {
		err = m.answers(ctx, s, daemon)
	}
	if err == nil {
		return daemon, nil
	}
	if errors.Is(err, process.ErrGone) {
		err = errEnded
	}
	said, _ := root.ReadFile("output.log")
	err = fmt.Errorf("%s over %q: %w%s", controlProgram, s.devices, err, words(said))
	if daemon != nil {
		_ = daemon.Close()
	}
	s.leave()
	return nil, errors.Join(err, killAll(s.dir))
}

// answers waits until the daemon can be asked.
func (m *Manager) answers(ctx context.Context, s *set, daemon *process.Process) error {
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	var last error
	for {
		select {
		case <-daemon.Ended():
			return errEnded
		case <-ctx.Done():
			return failure.New(failure.Busy, "it has not begun to answer in time (%v)", last)
		case <-look.C:
		}
		if _, err := os.Lstat(filepath.Join(s.pipe(), "control")); err != nil {
			continue
		}
		if s.root == nil {
			_ = s.enter(daemon) // own tells
		}
		if _, last = m.servers(ctx, s); last == nil {
			return nil
		}
		look.Reset(50 * time.Millisecond) // asking is dear
	}
}

// enter has commands run where the daemon does.
func (s *set) enter(daemon *process.Process) (err error) {
	s.leave()
	s.root, err = daemon.Root()
	return err
}

// leave has programs launched.
func (s *set) leave() {
	if s.root != nil {
		_ = s.root.Close()
	}
	s.root = nil
}

// letGo closes the handles of a daemon, and of its server, that are no longer of
// interest.
func (s *set) letGo() {
	s.leave()
	for _, p := range []*process.Process{s.daemon, s.server} {
		if p != nil {
			_ = p.Close()
		}
	}
	s.daemon, s.server = nil, nil
	s.answer.Store(nil)
}
