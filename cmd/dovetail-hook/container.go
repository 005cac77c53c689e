package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	oci "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// roots are where the kernel's files are mounted, and the file of the host's network
// namespace. Empty: this process is in it.
type roots struct{ proc, cgroup, network string }

var host = roots{proc: "/proc", cgroup: "/sys/fs/cgroup"}

// readState reads what the runtime tells a hook of its container (OCI runtime
// specification, "State").
func readState(from io.Reader) (*oci.State, error) {
	state := &oci.State{}
	if err := json.NewDecoder(from).Decode(state); err != nil {
		return nil, failure.New(failure.Invalid, "the container's state on standard input: %w: the container runtime calls this as an OCI hook", err)
	}
	if state.Pid <= 0 {
		return nil, failure.New(failure.Invalid, "the state of container %q: pid is %d: it must be a createRuntime hook, which runs when the container has a process", state.ID, state.Pid)
	}
	return state, nil
}

// cgroupOf is the path in sysfs of the process's cgroup in the unified hierarchy
// (cgroups(7), "/proc/pid/cgroup").
func (r roots) cgroupOf(pid int) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return "", failure.New(failure.Absent, "the container's process has gone: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		path, unified := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !unified {
			continue
		}
		// Limits of "/" would be everybody's; "/.." is outside of what this process sees.
		if path == "/" || strings.HasPrefix(path, "/..") {
			return "", failure.New(failure.Unsupported, "process %d is in cgroup %q: the container needs one of its own: %w", pid, path, errVersion1)
		}
		path = filepath.Join(r.cgroup, path)
		// Each cgroup of version 2 has this file, and none of version 1.
		if _, err := os.Stat(filepath.Join(path, "cgroup.controllers")); err != nil {
			return "", failure.New(failure.Unsupported, "%w: %w", err, errVersion1)
		}
		return path, nil
	}
	return "", failure.New(failure.Unsupported, "process %d is in no cgroup of version 2: %w", pid, errVersion1)
}

// errVersion1 says what to do.
var errVersion1 = fmt.Errorf("boot the node with cgroup version 2 alone (systemd.unified_cgroup_hierarchy=1), mounted at %s", host.cgroup)
