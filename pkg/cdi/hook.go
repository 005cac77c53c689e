package cdi

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// Hook is Dovetail's own, which the runtime runs on the host before a container starts,
// and without whose success it does not start.
type Hook struct {
	// Path of dovetail-hook on the host.
	Path string
	// SysfsRoot is where the host has sysfs. Empty: /sys.
	SysfsRoot string
}

func (h Hook) run(command string, options ...string) *specs.Hook {
	return &specs.Hook{
		HookName: "createRuntime", Path: h.Path,
		Args: append([]string{filepath.Base(h.Path), command}, options...),
	}
}

// MemoryLimit implements Edits: the limit is set on the container's cgroup. Each share has
// its hook: a container can have shares of several GPUs.
func (n *NVIDIA) MemoryLimit(d Device) *specs.ContainerEdits {
	return &specs.ContainerEdits{Hooks: []*specs.Hook{n.options.Hook.run("memory-limit",
		"--driver-root="+n.options.HostDriverRoot, "--gpu="+d.GPU, fmt.Sprintf("--share=%s of request %s", d.Name, d.Request), fmt.Sprintf("--bytes=%d", d.MemoryLimit),
	)}}
}

// longestOrder is what a program takes as one argument, 32 pages (execve(2)), without the
// option's name.
const longestOrder = 32*4096 - len("--order=") - 1

// move has a NIC moved into the container's network namespace.
func (h Hook) move(order *hardware.NICMove) (*specs.Hook, error) {
	encoded, err := json.Marshal(order)
	if err != nil {
		return nil, fmt.Errorf("encode the order to move NIC %s: %w", order.Home.Address, err)
	}
	if len(encoded) > longestOrder {
		routes := 0
		for _, d := range order.Home.Netdevs {
			routes += len(d.Routes)
		}
		return nil, failure.New(failure.Unsupported,
			"NIC %s has %d routes on the host, which are more than can be moved with it: take them elsewhere, or have the NIC stay with keepHostNetwork: true", order.Home.Address, routes)
	}
	options := []string{"--order=" + string(encoded)}
	if h.SysfsRoot != "" {
		options = append(options, "--sysfs-root="+h.SysfsRoot)
	}
	return h.run("nic", options...), nil
}
