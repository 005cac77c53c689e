package kernel

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// mounts are where namespaces have files that keep them, in the host's tree (ip-netns(8);
// container runtimes follow it).
var mounts = []string{"run/netns", "var/run/netns", "run/docker/netns"}

// Others implements Kernel. First come those with a file, then those of processes. Others'
// processes can only be looked at with CAP_SYS_PTRACE.
func (l *Linux) Others() []string {
	var paths []string
	for _, dir := range mounts {
		dir = filepath.Join(l.ProcRoot, "1/root", dir)
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	processes, _ := os.ReadDir(l.ProcRoot)
	for _, e := range processes {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			paths = append(paths, filepath.Join(l.ProcRoot, e.Name(), "ns/net"))
		}
	}
	return distinct(paths, l.host())
}

// distinct are those of paths that lead to different namespaces, but not to the host's.
func distinct(paths []string, host string) []string {
	seen := map[ID]bool{}
	var others []string
	for _, path := range append([]string{host}, paths...) {
		var stat unix.Stat_t
		if unix.Stat(path, &stat) != nil {
			continue
		}
		if id := (ID{stat.Dev, stat.Ino}); !seen[id] {
			seen[id] = true
			others = append(others, path)
		}
	}
	if len(others) > 0 && others[0] == host {
		return others[1:]
	}
	return others
}
