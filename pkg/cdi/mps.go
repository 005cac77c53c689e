package cdi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

// MPS is a control daemon as its clients need it.
type MPS struct {
	// Pipe is the pipe directory, and Shm what server and clients have as /dev/shm:
	// both on the host.
	Pipe, Shm string
	// ThreadPercentage is the most of the multiprocessors for one process; 0 is no
	// limit.
	ThreadPercentage int
	// Memory is the most for one process, in bytes, of each of the daemon's devices
	// in its order; 0 is no limit.
	Memory []uint64
	// LowPriority: other clients come first.
	LowPriority bool
}

// add tells a container of its control daemon (NVIDIA, "Multi-Process Service",
// environment variables). The pipe directory is at the same place as on the host, so
// that a container can have those of several claims, and read-only, which keeps nobody
// from connecting: root, too, puts no socket in the daemon's place.
func (m *MPS) add(edits *specs.ContainerEdits) {
	edits.Mounts = append(slices.Clone(edits.Mounts),
		&specs.Mount{HostPath: m.Pipe, ContainerPath: m.Pipe, Options: []string{"ro", "bind", "nosuid", "nodev", "noexec"}},
		&specs.Mount{HostPath: m.Shm, ContainerPath: "/dev/shm", Options: []string{"rw", "bind", "nosuid", "nodev", "noexec"}},
	)
	edits.Env = append(edits.Env, "CUDA_MPS_PIPE_DIRECTORY="+m.Pipe)
	if m.ThreadPercentage > 0 {
		edits.Env = append(edits.Env, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="+strconv.Itoa(m.ThreadPercentage))
	}
	if limits := m.memoryLimits(); limits != "" {
		edits.Env = append(edits.Env, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="+limits)
	}
	if m.LowPriority {
		edits.Env = append(edits.Env, "CUDA_MPS_CLIENT_PRIORITY=1")
	}
}

// memoryLimits is "0=10240M,1=5120M": by the device's number among the daemon's, which
// is what clients count by, in MiB.
func (m *MPS) memoryLimits() string {
	var limits []string
	for i, memory := range m.Memory {
		if memory > 0 {
			limits = append(limits, fmt.Sprintf("%d=%dM", i, memory>>20))
		}
	}
	return strings.Join(limits, ",")
}
