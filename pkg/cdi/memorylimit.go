package cdi

import (
	"fmt"
	"path/filepath"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

// MemoryLimit implements Edits with a hook of Dovetail's own, which sets the limit on the
// container's cgroup before the container starts, and keeps it from starting where it
// cannot. Each share has its hook: a container can have shares of several GPUs.
func (n *NVIDIA) MemoryLimit(gpu string, bytes uint64) *specs.ContainerEdits {
	return &specs.ContainerEdits{Hooks: []*specs.Hook{{
		HookName: "createRuntime",
		Path:     n.options.LimitHookPath,
		Args: []string{
			filepath.Base(n.options.LimitHookPath), "memory-limit",
			"--driver-root=" + n.options.HostDriverRoot, "--gpu=" + gpu, fmt.Sprintf("--bytes=%d", bytes),
		},
	}}}
}
