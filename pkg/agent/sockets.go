package agent

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"

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

// alone says whether no other agent serves this node: each has a socket of its own.
// Those of agents that were killed are removed.
func alone(pluginDir string) bool {
	sockets, err := filepath.Glob(filepath.Join(pluginDir, "dra*.sock"))
	if err != nil || len(sockets) <= 1 {
		return err == nil
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
