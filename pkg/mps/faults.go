package mps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

const (
	// logInterval is between looks at logs.
	logInterval = 2 * time.Second
	// maxLog is what a log file may grow to, in bytes: they lie in memory, mostly, and
	// nobody else shortens them.
	maxLog = 1 << 20
)

// watchLogs looks for servers in state FAULT. To ask costs programs, so it is done
// when a server has written to its log, as it does for each client. A fault whose
// clients have all gone by then is over, and is not told. A server whose process is not
// known is asked for each time.
func (m *Manager) watchLogs() {
	look := time.NewTicker(logInterval)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-m.ctx.Done():
			return
		}
		for _, s := range m.all() {
			select {
			case s.lock <- struct{}{}:
				m.watchers.Go(func() { // a daemon that hangs delays no other set
					defer func() { <-s.lock }()
					m.lookAt(m.ctx, s)
				})
			default: // somebody is at it, and the next look is soon
			}
		}
	}
}

// lookAt notices a fault, and the end of a server whose process is not known. The set's
// lock is held.
func (m *Manager) lookAt(ctx context.Context, s *set) {
	if s.answer.Load() == nil {
		return
	}
	sizes := serverLogs(s.log())
	watched := s.record.Protocol < 3 || s.server != nil
	if watched && !s.fault && s.logs != nil && maps.Equal(sizes, s.logs) {
		return
	}
	servers, err := m.servers(ctx, s)
	if err != nil { // it ends just now, or is asked again
		m.options.Log.Warn("Cannot ask an MPS control daemon for its servers", "devices", s.devices, "err", err)
		return
	}
	s.logs = sizes
	if daemon := s.daemon; s.record.Protocol == 3 && indexServer(servers) < 0 {
		m.watchers.Go(func() { m.died(s, daemon) }) // which waits for the lock
		return
	}
	at := slices.IndexFunc(servers, func(s server) bool { return s.fault })
	if at >= 0 && !s.fault {
		m.options.Log.Warn("An MPS server is in state FAULT", "devices", s.devices, "server", servers[at].name)
		m.events.emit(hardware.MPSEvent{
			Devices: s.devices, Kind: hardware.MPSFaulted,
			Message: fmt.Sprintf("a client's fatal fault has ended the work of all clients of MPS server %s; new ones are refused until those have gone", servers[at].name),
		})
	}
	s.fault = at >= 0
}

// serverLogs are the sizes of servers' logs. A log that has become long is emptied.
func serverLogs(dir string) map[string]int64 {
	sizes := map[string]int64{}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return sizes
	}
	defer func() { _ = root.Close() }()
	for _, pattern := range []string{"*.log", "*/*.log"} {
		paths, _ := fs.Glob(root.FS(), pattern) // the pattern is right
		for _, path := range paths {
			info, err := root.Stat(path)
			if err != nil {
				continue
			}
			if strings.HasPrefix(filepath.Base(path), "server") {
				sizes[path] = info.Size()
			}
			if info.Size() > maxLog {
				empty(root, path)
			}
		}
	}
	return sizes
}

// empty shortens a log; where it cannot, it is looked at again soon.
func empty(root *os.Root, path string) {
	if f, err := root.OpenFile(path, os.O_WRONLY, 0); err == nil {
		_ = errors.Join(f.Truncate(0), f.Close())
	}
}
