package nvml

import (
	"slices"
	"time"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// theDriver is what calls are about that are about no GPU.
const theDriver = "the NVIDIA driver"

// openPatience is more than the driver takes to start: without persistence mode it
// initializes all GPUs of the node then, some seconds each.
const openPatience = time.Minute

// acquire returns the session, after opening NVML where that has yet to happen.
// The caller releases it. A driver that does not answer is failure.Busy; NVML's opening
// goes on, and who asks afterwards has it.
func (g *GPUs) acquire() (*session, error) {
	for {
		if s := g.use(); s != nil {
			return s, nil
		}
		if err := g.calls.Within(g.options.OpenPatience, theDriver, g.open); err != nil {
			return nil, err
		}
	}
}

// use returns the session that there is; nil: none.
func (g *GPUs) use() *session {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.session != nil {
		g.session.users++
	}
	return g.session
}

// open makes a session where there is none.
func (g *GPUs) open() error {
	g.opening.Lock()
	defer g.opening.Unlock()
	g.mutex.Lock()
	isOpen, library, path, ended := g.session != nil, g.locate(), g.path, g.ended
	g.mutex.Unlock()
	if isOpen {
		return nil
	}
	wait(ended) // while it is open, it is not initialized anew
	switch ret := library.Init(); ret {
	case api.SUCCESS:
	case api.ERROR_LIBRARY_NOT_FOUND:
		return failure.New(failure.Unreachable, "NVML cannot be opened as %s: install the NVIDIA driver", path)
	case api.ERROR_DRIVER_NOT_LOADED:
		return failure.New(failure.Absent, "the NVIDIA driver is not loaded: load its kernel module")
	case api.ERROR_LIB_RM_VERSION_MISMATCH:
		return failure.New(failure.Unreachable, "NVML, opened as %s, is of another version than the loaded driver: "+
			"load the driver anew or reboot, then restart this agent", path)
	default:
		return failure.New(classOf(ret), "NVML, opened as %s, does not start: %s", path, ret)
	}
	has := func(name string) bool { return library.Extensions().LookupSymbol(name) == nil }
	s := &session{Interface: library, has: map[string]bool{}, partitions: !slices.ContainsFunc(partitioning, func(name string) bool { return !has(name) })}
	for _, name := range newer {
		s.has[name] = has(name)
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.session = s
	return nil
}
