package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strconv"

	oci "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/cgroup"
)

// roots are where the kernel's files are mounted, and the file of the host's network
// namespace. Empty: this process is in it.
type roots struct{ proc, cgroup, network string }

var host = roots{proc: "/proc", cgroup: cgroup.Root}

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

// cgroupOf is the path in sysfs of the process's cgroup, which is never that of the whole
// node: its limits would be everybody's.
func (r roots) cgroupOf(pid int) (string, error) {
	path, err := cgroup.Of(strconv.Itoa(pid), r.proc, r.cgroup)
	if err == nil && path == filepath.Clean(r.cgroup) {
		return "", failure.New(failure.Unsupported, "process %d is in the node's own cgroup: have the container runtime make the container one of its own", pid)
	}
	return path, err
}
