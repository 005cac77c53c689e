package mps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/mps/process"
)

// idLength is a set's name's, in hexadecimal digits: short, since a socket's path has
// 107 bytes (unix(7)).
const idLength = 12

// idOf names a set by its devices and their order.
func idOf(devices []string) string {
	sum := sha256.Sum256([]byte(strings.Join(devices, ",")))
	return hex.EncodeToString(sum[:])[:idLength]
}

// set is some devices and their control daemon.
type set struct {
	id      string
	devices []string
	dir     string
	// answer is nil but while the daemon runs.
	answer atomic.Pointer[hardware.MPSDaemon]

	lock   chan struct{} // has one element, which is whose turn it is; guards what follows
	record record
	daemon *process.Process // nil: there is none
	server *process.Process // of protocol 3; nil: there is none, or it is not known
	root   *os.File         // the daemon's root directory; nil: there is none, or it cannot be opened
	since  time.Time        // when daemon was taken over
	gone   bool             // from the manager's list
	failed error            // why, if for a reason
	wait   time.Duration    // before the next restart
	logs   map[string]int64 // sizes of servers' logs when their status was asked last
	fault  bool             // a server is in state FAULT
}

func newSet(below string, devices []string) *set {
	id := idOf(devices)
	return &set{id: id, devices: devices, dir: filepath.Join(below, id), lock: make(chan struct{}, 1)}
}

// acquire takes the set's lock, or returns ctx's error.
func (s *set) acquire(ctx context.Context) (unlock func(), err error) {
	select {
	case s.lock <- struct{}{}:
		return func() { <-s.lock }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *set) pipe() string { return filepath.Join(s.dir, "pipe") }
func (s *set) shm() string  { return filepath.Join(s.dir, "shm") }
func (s *set) log() string  { return filepath.Join(s.dir, "log") }

// clientsShm is where clients find shm.
func (s *set) clientsShm() string { return filepath.Join(s.dir, "clients-shm") }

// place is where clients find the daemon; with protocol 3 it is the server's default
// namespace, which has no limits.
func (s *set) place() hardware.MPSDaemon {
	pipe := s.pipe()
	if s.record.Protocol == 3 {
		pipe = filepath.Join(pipe, serverName)
	}
	return hardware.MPSDaemon{Protocol: s.record.Protocol, Pipe: pipe, Shm: s.clientsShm()}
}

// lead has the clients' /dev/shm found by way of the daemon's entry in /proc, so that it
// is there just as long as the daemon is. Where the daemon is not, CUDA would run without
// MPS, and without its limits: so no container starts, since its mount has no source.
// While no Manager runs, nobody calls unlead, and another process could get the daemon's
// process ID: then containers would start.
func (s *set) lead(daemon process.ID) error {
	link := s.clientsShm()
	fresh := link + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(fmt.Sprintf("/proc/%d/../..%s", daemon.PID, s.shm()), fresh); err != nil {
		return err
	}
	return os.Rename(fresh, link)
}

// unlead takes the clients' /dev/shm away.
func (s *set) unlead() { _ = os.Remove(s.clientsShm()) }

// makeDirs makes the set's directories, and leaves those that are there: containers may
// have them mounted.
func (s *set) makeDirs() error {
	for _, d := range []struct {
		path string
		mode fs.FileMode
	}{{s.dir, 0o711}, {s.pipe(), 0o755}, {s.shm(), 0o777 | fs.ModeSticky}, {s.log(), 0o700}} {
		if err := os.Mkdir(d.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := os.Chmod(d.path, d.mode); err != nil { // whatever the umask is
			return err
		}
	}
	return nil
}

// sweepPipe removes the sockets and files of a daemon that has died, and no directory.
func (s *set) sweepPipe() error { return sweep(s.pipe()) }

// sweep removes what is below a directory and is none itself. Who else can write there
// cannot lead it out of the directory by links.
func sweep(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = root.Remove(path)
		}
		if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
			return nil
		}
		return err
	})
}
