package cdi

import (
	"fmt"
	"strconv"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

// MemoryLimit implements Edits with NVIDIA's own hook, which sets the limit on the
// container's cgroup before the container starts, and keeps it from starting where
// it cannot; the limit ends with the cgroup (nvml.h, nvmlSetMemoryLimits_v1_t).
func (n *NVIDIA) MemoryLimit(gpu string, bytes uint64) *specs.ContainerEdits {
	return &specs.ContainerEdits{
		// In MiB (nvidia-cdi-hook apply-cuda-memory-limits --help).
		Env: []string{"NVIDIA_GPU_MEMORY_LIMIT=" + strconv.FormatUint(bytes>>20, 10)},
		Hooks: []*specs.Hook{{
			HookName: "createRuntime",
			Path:     n.options.HookPath,
			Args: []string{
				"nvidia-cdi-hook", "apply-cuda-memory-limits",
				fmt.Sprintf("--driver-root=%s", n.options.HostDriverRoot), "--gpu-id=" + gpu,
			},
		}},
	}
}
