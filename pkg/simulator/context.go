package simulator

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// contextsDir has a directory for each boot, with a file for each process that uses
// devices. The process has a lock on it (flock(2)), which ends with the process.
const contextsDir = "contexts"

// Context is what a process has that uses devices: an MPS server for all its
// clients, and any other process for itself. It ends with the process.
type Context struct {
	machine *Machine
	file    *os.File
	holds   []*Hold
	devices []Device
	use     use
}

// use is what lies in a context's file.
type use struct {
	// Devices by their UUIDs.
	Devices     []string     `json:"devices"`
	Allocations []Allocation `json:"allocations,omitempty"`
}

// Allocation is memory that somebody has on a device.
type Allocation struct {
	// Owner tells a context's clients apart.
	Owner string `json:"owner,omitempty"`
	// Device is its UUID; Place is where the memory is.
	Device string `json:"device"`
	Place  string `json:"place"`
	Bytes  uint64 `json:"bytes"`
	// Cgroup that the owner is in, where that is known: "/kubepods/…", or as
	// NamespaceCgroup has it.
	Cgroup string `json:"cgroup,omitempty"`
}

// OpenContext lets this process use devices. failure.Busy where a device's compute
// mode does not let one more process in.
func (m *Machine) OpenContext(devices []string) (*Context, error) {
	c := &Context{machine: m, use: use{Devices: devices}}
	err := m.Frozen(func(s *State) error {
		others, err := m.contexts(s)
		if err != nil {
			return err
		}
		for _, name := range devices {
			d, err := s.Device(name)
			if err != nil {
				return err
			}
			if err := admit(d, others); err != nil {
				return err
			}
			c.devices = append(c.devices, d)
		}
		return m.classify(c.create(filepath.Join(m.path(contextsDir), s.BootID)))
	})
	for _, d := range c.devices {
		if err != nil {
			break
		}
		var hold *Hold
		if hold, err = m.Hold(d.Spec.UUID, d.Instance...); err == nil {
			c.holds = append(c.holds, hold)
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func admit(d Device, others []use) error {
	if d.ComputeMode == machine.ComputeModeProhibited {
		return failure.New(failure.Busy, "GPU %s is in compute mode Prohibited", d.Spec.UUID)
	}
	taken := slices.ContainsFunc(others, func(o use) bool { return slices.Contains(o.Devices, d.UUID) })
	if d.ComputeMode == machine.ComputeModeExclusiveProcess && taken {
		return failure.New(failure.Busy, "GPU %s is in compute mode ExclusiveProcess, and another process has it", d.Spec.UUID)
	}
	return nil
}

func (c *Context) create(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "")
	if err != nil {
		return err
	}
	c.file = f
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return c.write()
}

// write is under the machine's lock.
func (c *Context) write() error {
	data, err := json.Marshal(c.use)
	if err != nil {
		return err
	}
	if err := c.file.Truncate(0); err != nil {
		return err
	}
	_, err = c.file.WriteAt(data, 0)
	return err
}

// Devices are the context's, in the order in which they were named.
func (c *Context) Devices() []Device { return c.devices }

// Allocate takes memory of a device for an owner, who is in that cgroup.
// failure.Conflict where the device has not as much left, or the cgroup's limit
// (SetMemoryLimits) is reached.
func (c *Context) Allocate(d Device, owner, cgroup string, bytes uint64) error {
	return c.machine.Frozen(func(s *State) error {
		g, err := s.usable(d.Spec.UUID)
		if err != nil {
			return err
		}
		all, err := c.machine.allocations(s)
		if err != nil {
			return err
		}
		var used uint64
		for _, a := range all {
			if a.Place == d.memoryPlace() {
				used += a.Bytes
			}
		}
		if bytes > d.Memory-min(used, d.Memory) {
			return failure.New(failure.Conflict, "device %s has %d bytes of %d left, %d are wanted", d.UUID, d.Memory-min(used, d.Memory), d.Memory, bytes)
		}
		if err := g.withinLimits(all, cgroup, bytes); err != nil {
			return err
		}
		c.use.Allocations = append(c.use.Allocations,
			Allocation{Owner: owner, Device: d.UUID, Place: d.memoryPlace(), Bytes: bytes, Cgroup: cgroup})
		return c.write()
	})
}

// Free gives back all that an owner has.
func (c *Context) Free(owner string) error {
	return c.machine.Frozen(func(*State) error {
		var kept []Allocation
		for _, a := range c.use.Allocations {
			if a.Owner != owner {
				kept = append(kept, a)
			}
		}
		c.use.Allocations = kept
		return c.write()
	})
}

// Close ends the use of all devices.
func (c *Context) Close() {
	for _, h := range c.holds {
		h.Release()
	}
	if c.file != nil {
		os.Remove(c.file.Name()) // else whoever looks next does
		c.file.Close()
	}
}

// contexts are those of processes that live; the files of others are removed. The
// machine's lock is held.
func (m *Machine) contexts(s *State) ([]use, error) {
	files, err := filepath.Glob(filepath.Join(m.path(contextsDir), s.BootID, "*"))
	if err != nil {
		return nil, err
	}
	var all []use
	for _, file := range files {
		if !locked(file) {
			os.Remove(file) // a context that is being closed may have done so
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, m.classify(err)
		}
		var u use
		if err := json.Unmarshal(data, &u); err != nil {
			return nil, failure.New(failure.Corrupt, "%s: %w", file, err)
		}
		all = append(all, u)
	}
	return all, nil
}

func (m *Machine) allocations(s *State) ([]Allocation, error) {
	contexts, err := m.contexts(s)
	var all []Allocation
	for _, c := range contexts {
		all = append(all, c.Allocations...)
	}
	return all, err
}

// Allocations are those of all processes that live.
func (m *Machine) Allocations() (all []Allocation, err error) {
	err = m.Frozen(func(s *State) error {
		all, err = m.allocations(s)
		return err
	})
	return all, err
}
