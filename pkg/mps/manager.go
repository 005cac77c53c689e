// Package mps looks after the node's MPS control daemons and time slices: it starts,
// watches, restarts and stops one control daemon a set of devices, and finds them
// again after it was killed itself. It is the only package that runs programs of the
// NVIDIA driver.
//
// A set's files are in one directory below Options.Dir:
//
//	ID/            0711 root: who is not root finds only what it is told of
//	  pipe/        0755 root: every user's clients connect; containers have it, or a namespace's
//	               part of it, read-only, so that not even root there puts a socket in a daemon's place
//	  shm/         1777 root: clients' and daemon's /dev/shm, as such a directory is
//	  clients-shm  a link to it that leads there while the daemon lives
//	  log/         0700 root: logs name the processes of all clients
//	  set.json     0600 root: what the daemon's keeper must know after its own end
package mps

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// Options say where things are.
type Options struct {
	// Dir is the run directory, below which each set of devices has one. It has the
	// same path on the host, in clients' containers and for control daemons.
	Dir string
	// DriverRoot is where the driver is installed.
	DriverRoot string
	// BootID changes at each boot.
	BootID string
	// Launcher is the command line that runs launch.Exec with one more argument.
	Launcher []string
	// Describe reads the GPUs. It is asked before a first start, and where a program
	// has failed.
	Describe func(context.Context) (hardware.Description, error)
	Log      *slog.Logger
}

// Manager is hardware.Sharing by the driver's own programs.
type Manager struct {
	options  Options
	events   events
	slices   timeSlices
	ctx      context.Context // ends with Close
	end      context.CancelFunc
	watchers sync.WaitGroup

	mutex sync.Mutex // guards what follows; held for moments only
	sets  map[string]*set
}

var _ hardware.Sharing = (*Manager)(nil)

// New finds the control daemons of an earlier Manager, and starts those again that
// died meanwhile. A Manager with an error serves, but for what the error names.
func New(options Options) (*Manager, error) {
	if err := os.MkdirAll(options.Dir, 0o711); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	m := &Manager{options: options, sets: map[string]*set{}}
	m.slices.run = m.smi
	m.ctx, m.end = context.WithCancel(context.Background())
	return m, m.recover()
}

// Close lets control daemons and their clients be, for the next Manager.
func (m *Manager) Close() {
	m.end()
	m.watchers.Wait()
}

// StartMPS implements hardware.Sharing. Where the control daemon runs, the answer comes
// from memory. A start that was begun goes on when the caller's time is over.
func (m *Manager) StartMPS(ctx context.Context, devices []string) (hardware.MPSDaemon, error) {
	if err := checkDevices(devices); err != nil {
		return hardware.MPSDaemon{}, err
	}
	for {
		s, err := m.setOf(devices)
		if err != nil {
			return hardware.MPSDaemon{}, err
		}
		if answer := s.answer.Load(); answer != nil {
			return *answer, nil
		}
		unlock, err := s.acquire(ctx)
		if err != nil {
			return hardware.MPSDaemon{}, err
		}
		if s.gone { // while this call waited
			unlock()
			if s.failed != nil {
				return hardware.MPSDaemon{}, s.failed
			}
			continue
		}
		if s.record.Stopping { // which has failed
			if _, err := detached(ctx, unlock, func(ctx context.Context) (struct{}, error) { return struct{}{}, m.stop(ctx, s) }); err != nil {
				return hardware.MPSDaemon{}, fmt.Errorf("the MPS control daemon before: %w", err)
			}
			continue
		}
		return detached(ctx, unlock, func(ctx context.Context) (hardware.MPSDaemon, error) { return m.start(ctx, s) })
	}
}

// StopMPS implements hardware.Sharing. Clients that are left lose their work.
func (m *Manager) StopMPS(ctx context.Context, devices []string) error {
	if err := checkDevices(devices); err != nil {
		return err
	}
	s := m.find(devices)
	if s == nil {
		return nil
	}
	unlock, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	if s.gone {
		unlock()
		return nil
	}
	_, err = detached(ctx, unlock, func(ctx context.Context) (struct{}, error) { return struct{}{}, m.stop(ctx, s) })
	return err
}

// WatchMPS implements hardware.Sharing. What became of daemons while nobody watched
// comes first.
func (m *Manager) WatchMPS(ctx context.Context, notify func(hardware.MPSEvent)) error {
	m.events.watch(ctx, notify)
	return nil
}

// detached does what must not stop half-way because a caller's time is over, and
// unlocks after it.
func detached[T any](ctx context.Context, unlock func(), do func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer unlock()
		value, err := do(context.WithoutCancel(ctx))
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

func checkDevices(devices []string) error {
	if len(devices) == 0 {
		return failure.New(failure.Invalid, "MPS over no device: give at least one")
	}
	for i, d := range devices {
		if !strings.HasPrefix(d, "GPU-") && !strings.HasPrefix(d, "MIG-") || strings.Trim(d[4:], "0123456789abcdefABCDEF-") != "" {
			return failure.New(failure.Invalid, "MPS over %q: %q is no UUID of a GPU or MIG device", devices, d)
		}
		if slices.Contains(devices[:i], d) {
			return failure.New(failure.Invalid, "MPS over %q: %s is there twice: give each device once", devices, d)
		}
	}
	return nil
}

// find returns the set of just these devices, or nil.
func (m *Manager) find(devices []string) *set {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.sets[idOf(devices)]
}

// setOf is find, and makes a set where no other one has the devices.
func (m *Manager) setOf(devices []string) (*set, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	id := idOf(devices)
	if s, ok := m.sets[id]; ok {
		return s, nil
	}
	for _, other := range m.sets {
		for _, d := range other.devices {
			if slices.Contains(devices, d) {
				return nil, failure.New(failure.Conflict, "device %s is served by the MPS control daemon over %q: stop that one first", d, other.devices)
			}
		}
	}
	m.sets[id] = newSet(m.options.Dir, devices)
	return m.sets[id], nil
}

func (m *Manager) forget(s *set) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.sets, s.id)
}

// all are the sets there are.
func (m *Manager) all() []*set {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Collect(maps.Values(m.sets))
}
