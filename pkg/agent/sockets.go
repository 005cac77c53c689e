package agent

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// removeDeadSockets removes the sockets of agents that were killed before they
// could: the kubelet would try them for ever. A socket that somebody still serves
// is left alone.
func removeDeadSockets(registryDir, pluginDir string) error {
	var errs []error
	for _, pattern := range []string{
		filepath.Join(registryDir, catalog.DriverName+"-*reg.sock"),
		filepath.Join(pluginDir, "dra*.sock"),
	} {
		paths, err := filepath.Glob(pattern)
		errs = append(errs, err)
		for _, path := range paths {
			errs = append(errs, removeIfDead(path))
		}
	}
	return errors.Join(errs...)
}

func removeIfDead(path string) error {
	conn, err := net.Dial("unix", path)
	if err == nil {
		return conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return nil // not a matter of death: gone meanwhile, or no socket
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// listed is how long a directory must have been as it is for its time of change to tell
// of the next change: kernels count such times in steps of some milliseconds.
const listed = time.Second

// peers are the agents that serve this node: each has a socket of its own.
type peers struct {
	pluginDir string

	mu sync.Mutex // guards what follows
	// unchanged is the time of the directory's last change, when there was no other agent;
	// zero where one may have come since.
	unchanged time.Time
}

// Alone says whether no other agent serves this node. Sockets of those that were killed
// are removed.
func (p *peers) Alone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(p.pluginDir)
	if err == nil && !p.unchanged.IsZero() && info.ModTime().Equal(p.unchanged) {
		return true
	}
	p.unchanged = time.Time{}
	sockets, errOfSockets := filepath.Glob(filepath.Join(p.pluginDir, "dra*.sock"))
	if errOfSockets != nil || len(sockets) <= 1 {
		if errOfSockets == nil && err == nil && time.Since(info.ModTime()) > listed {
			p.unchanged = info.ModTime()
		}
		return errOfSockets == nil
	}
	alive := 0
	for _, path := range sockets {
		_ = removeIfDead(path)
		if _, err := os.Stat(path); err == nil {
			alive++
		}
	}
	return alive <= 1
}
