package mps

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/mps/process"
)

// recover looks at the directories that an earlier Manager has left.
func (m *Manager) recover() error {
	entries, err := os.ReadDir(m.options.Dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !e.IsDir() || len(e.Name()) != idLength || strings.Trim(e.Name(), "0123456789abcdef") != "" {
			continue
		}
		errs = append(errs, m.recoverSet(filepath.Join(m.options.Dir, e.Name())))
	}
	m.watchers.Go(m.watchLogs)
	return errors.Join(errs...)
}

func (m *Manager) recoverSet(dir string) error {
	record, err := readRecord(dir)
	if err == nil && (record.BootID != m.options.BootID || record.Stopping || filepath.Base(dir) != idOf(record.Devices)) {
		err = errors.New("it is of an earlier boot, or was about to stop")
	}
	if err != nil {
		m.options.Log.Info("Removing what is left of an MPS control daemon", "directory", dir, "why", err.Error())
		if err = removeAll(dir); err != nil { // whoever starts or stops it tries again
			s := &set{id: filepath.Base(dir), dir: dir, lock: make(chan struct{}, 1)}
			if record != nil {
				s.devices, s.record = record.Devices, *record
			}
			s.record.Stopping = true
			m.sets[s.id] = s
		}
		return err
	}
	s := newSet(m.options.Dir, record.Devices)
	s.record = *record
	m.sets[s.id] = s
	if !m.adopt(s) {
		s.unlead()
		m.watchers.Go(func() { m.revive(s) })
	}
	return nil
}

// adopt takes the daemon that an earlier Manager has started, if it and its server still
// run.
func (m *Manager) adopt(s *set) bool {
	daemon, err := process.Again(s.record.Daemon)
	if err != nil {
		return false
	}
	var server *process.Process
	if s.record.Server != (process.ID{}) {
		if server, err = process.Again(s.record.Server); err != nil {
			_ = daemon.Close()
			return false
		}
	}
	m.options.Log.Info("Found an MPS control daemon again", "devices", s.devices, "process", daemon.ID.PID)
	m.own(s, daemon, server)
	if s.record.Protocol == 3 {
		m.watchers.Go(func() { m.mendNamespaces(s) })
	}
	return true
}
