// Package cgroup finds the cgroups of processes in the unified hierarchy, that of
// version 2 (cgroups(7)).
package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// Root is where nodes have their cgroups mounted.
const Root = "/sys/fs/cgroup"

// errVersion1 says what to do.
var errVersion1 = fmt.Errorf("boot the node with cgroup version 2 alone (systemd.unified_cgroup_hierarchy=1), mounted at %s", Root)

// Unified says whether what is mounted at root is the unified hierarchy (statfs(2)).
func Unified(root string) bool {
	var fs unix.Statfs_t
	return root != "" && unix.Statfs(root, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// Own is the path of this process's cgroup in the unified hierarchy mounted at root, or
// root where that cannot be seen from here; empty where no such hierarchy is mounted.
func Own(root string) string {
	if !Unified(root) {
		return ""
	}
	if path, err := Of("self", "/proc", root); err == nil {
		return path
	}
	return root
}

// Of is the path below root of a process's cgroup (cgroups(7), "/proc/pid/cgroup"): root
// itself for who is in the root, or has it for one in a cgroup namespace.
// failure.Absent where the process has gone, failure.Unsupported where it is in no
// cgroup of version 2 that is seen below root.
func Of(process, proc, root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(proc, process, "cgroup"))
	if err != nil {
		return "", failure.New(failure.Absent, "process %s has gone: %w", process, err)
	}
	for line := range strings.Lines(string(data)) {
		path, unified := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !unified {
			continue
		}
		if strings.HasPrefix(path, "/..") { // outside of what this process sees
			return "", failure.New(failure.Unsupported, "process %s is in cgroup %q, which is not below %s as it is seen here: look from the host's cgroup namespace", process, path, root)
		}
		path = filepath.Join(root, path)
		// Each cgroup of version 2 has this file, and none of version 1.
		if _, err := os.Stat(filepath.Join(path, "cgroup.controllers")); err != nil {
			return "", failure.New(failure.Unsupported, "%w: %w", err, errVersion1)
		}
		return path, nil
	}
	return "", failure.New(failure.Unsupported, "process %s is in no cgroup of version 2: %w", process, errVersion1)
}
