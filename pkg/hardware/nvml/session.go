package nvml

import (
	"os"
	"path/filepath"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// libraryName is NVML's name for loaders.
const libraryName = "libnvidia-ml.so.1"

// libraryDirs are where distributions, and the driver's own installer, put it.
var libraryDirs = []string{
	"usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib",
	"lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib",
}

// session is NVML between Init and Shutdown. It ends when nobody uses it any
// more after it was dropped.
type session struct {
	api.Interface
	users int  // guarded by GPUs.mutex
	stale bool // guarded by GPUs.mutex
	// has says which of the newer functions this library has. go-nvml calls
	// them whether they are there or not, and a missing one ends the process.
	has map[string]bool
	// partitions says whether it has all of what partitions need.
	partitions bool
}

// newer functions that drivers still in use may lack.
var newer = []string{
	"nvmlDeviceGetArchitecture", "nvmlDeviceGetNumGpuCores", "nvmlDeviceGetMemoryInfo_v2",
	"nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetGpuFabricInfoV", getLimits, setLimits,
}

// partitioning are the functions that partitions need. Without the first, profiles have
// no names.
var partitioning = []string{
	"nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlDeviceGetGpuInstancePossiblePlacements_v2", "nvmlDeviceSetMigMode",
	"nvmlDeviceGetGpuInstances", "nvmlDeviceGetGpuInstanceById", "nvmlGpuInstanceGetInfo",
	"nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceDestroy",
	"nvmlGpuInstanceGetComputeInstanceProfileInfo", "nvmlGpuInstanceGetComputeInstances",
	"nvmlGpuInstanceGetComputeInstanceById", "nvmlComputeInstanceGetInfo_v2",
	"nvmlGpuInstanceCreateComputeInstance", "nvmlComputeInstanceDestroy",
	"nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex",
	"nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId",
}

func (g *GPUs) release(s *session) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	s.users--
	g.endLocked(s)
}

// drop makes the next acquire open NVML anew.
func (g *GPUs) drop(s *session) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.dropLocked(s)
}

func (g *GPUs) dropLocked(s *session) {
	if g.session != s {
		return // somebody was faster
	}
	g.session = nil
	clear(g.known)
	clear(g.xids)
	s.stale = true
	g.endLocked(s)
}

// endLocked leaves NVML where nobody uses the session any more. A sick driver may take its
// time, for which nobody waits but who opens NVML anew, or closes this.
func (g *GPUs) endLocked(s *session) {
	if !s.stale || s.users > 0 {
		return
	}
	before, ended := g.ended, make(chan struct{})
	g.ended = ended
	go func() {
		defer close(ended)
		wait(before)
		s.Shutdown() //nolint:errcheck // what it answers changes nothing
	}()
}

// wait until NVML has been left; nil: it never was.
func wait(ended chan struct{}) {
	if ended != nil {
		<-ended
	}
}

// gone turns a code that means that the driver went away into an error, and
// drops the session.
func (g *GPUs) gone(s *session, ret api.Return) error {
	switch ret {
	case api.ERROR_DRIVER_NOT_LOADED, api.ERROR_UNINITIALIZED:
		g.drop(s)
		return failure.New(failure.Absent, "the NVIDIA driver was unloaded: load its kernel module")
	}
	return nil
}

// locate returns the library, under the path where it is now. Without any, it
// has the path where it most likely will be.
func (g *GPUs) locate() api.Interface {
	if path := g.options.find(); g.library == nil || path != g.path {
		g.path, g.library = path, api.New(api.WithLibraryPath(path))
	}
	return g.library
}

func (o Options) find() string {
	switch {
	case o.LibraryPath != "":
		return o.LibraryPath
	case o.DriverRoot == "":
		return libraryName
	}
	for _, dir := range libraryDirs {
		path := filepath.Join(o.DriverRoot, dir, libraryName)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join(o.DriverRoot, libraryDirs[0], libraryName)
}
