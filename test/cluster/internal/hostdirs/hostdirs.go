// Package hostdirs makes, on the host, the directories that nodes cover with their
// own (a mount needs something to lie on), and removes those that it made when
// the last cluster goes.
package hostdirs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// Dir is one path of which each node has its own version.
type Dir struct {
	Path     string
	Volatile bool // gone after a reboot
}

// Private lists them. Debian's /var/run is a link to /run.
var Private = []Dir{
	{"/run/netns", true},
	{"/run/containerd", true},
	{"/run/cdi", true},
	{"/run/dovetail", true},
	{"/var/lib/kubelet", false},
	{"/var/lib/containerd", false},
	{"/var/lib/cni", false},
	{"/var/lib/dovetail-sim", false},
	{"/var/log/pods", false},
	{"/var/log/containers", false},
	{"/etc/cdi", false},
	{"/etc/cni/net.d", false},
	{"/opt/cni/bin", false},
}

// Registry remembers which clusters there are and what was made for them.
type Registry struct {
	dir  string
	lock string
	dirs []Dir
}

// Host is this machine's registry.
func Host() Registry {
	return Registry{filepath.Join(state.Base, ".registry"), "/run/lock/dovetail-cluster/host-dirs", Private}
}

// Claim makes what is missing and writes down for whom.
func (r Registry) Claim(cluster, stateDir string) error {
	l, err := state.LockFile(r.lock, 30*time.Second, nil)
	if err != nil {
		return err
	}
	defer l.Unlock()
	if err := os.MkdirAll(r.users(), 0o755); err != nil {
		return err
	}
	other, err := os.ReadFile(filepath.Join(r.users(), cluster))
	if err == nil && string(other) != stateDir {
		return fmt.Errorf("a cluster %q has its state in %s: end it with `down --state-dir %[2]s`, or give another --name", cluster, other)
	}
	if err := os.WriteFile(filepath.Join(r.users(), cluster), []byte(stateDir), 0o644); err != nil {
		return err
	}
	for _, d := range r.dirs {
		missing := missingParents(d.Path)
		if len(missing) == 0 {
			continue
		}
		// Written down first: a crash between leaves a note, not a directory.
		if err := r.note(missing); err != nil {
			return err
		}
		if err := os.MkdirAll(d.Path, 0o755); err != nil {
			return fmt.Errorf("making %s for the nodes to cover: %w", d.Path, err)
		}
	}
	return nil
}

// Release forgets a cluster. With the last one the directories go that were made
// and are still empty.
func (r Registry) Release(cluster string) error {
	l, err := state.LockFile(r.lock, 30*time.Second, nil)
	if err != nil {
		return err
	}
	defer l.Unlock()
	if err := os.Remove(filepath.Join(r.users(), cluster)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if rest, err := os.ReadDir(r.users()); err != nil || len(rest) > 0 {
		return nil
	}
	made, _ := os.ReadFile(r.made())
	dirs := strings.Fields(string(made))
	slices.Sort(dirs)
	slices.Reverse(dirs) // children before parents
	for _, d := range dirs {
		_ = os.Remove(d) // refuses what is not empty
	}
	err = os.RemoveAll(r.dir)
	_ = os.Remove(filepath.Dir(r.dir))
	return err
}

// StateDir says where a known cluster has its state.
func (r Registry) StateDir(cluster string) (string, bool) {
	b, err := os.ReadFile(filepath.Join(r.users(), cluster))
	return string(b), err == nil
}

func (r Registry) users() string { return filepath.Join(r.dir, "clusters") }
func (r Registry) made() string  { return filepath.Join(r.dir, "made-dirs") }

func (r Registry) note(dirs []string) error {
	f, err := os.OpenFile(r.made(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strings.Join(dirs, "\n"))
	return errors.Join(err, f.Close())
}

// missingParents lists the path and those of its parents that do not exist.
func missingParents(path string) []string {
	var out []string
	for ; path != "/"; path = filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		out = append(out, path)
	}
	return out
}
