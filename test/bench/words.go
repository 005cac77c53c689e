package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// words describes the machine without saying which it is.
func (b *bench) words() (string, error) {
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		return "", err
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return "", err
	}
	disk, err := fileSystem(b.disk)
	if err != nil {
		return "", err
	}
	memory, err := fileSystem(b.memory)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Machine: %d cores (%s), %d GiB of memory, Linux %s %s; the agent's records on %s, CDI specifications on %s; "+
		"etcd without fsync, as the test cluster has it; %s.",
		runtime.NumCPU(), model(), (info.Totalram*uint64(info.Unit)+1<<29)>>30,
		release(unix.ByteSliceToString(system.Release[:])), unix.ByteSliceToString(system.Machine[:]),
		disk, memory, runtime.Version()), nil
}

// release is a kernel's version without what its builder has added.
func release(full string) string { return strings.SplitN(full, "-", 2)[0] }

func model() string {
	content, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.SplitSeq(string(content), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func fileSystem(dir string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return "", err
	}
	if name, ok := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
	}[fs.Type]; ok {
		// Each ext4 with a journal has an entry there.
		if entries, err := os.ReadDir("/proc/fs/jbd2"); name == "ext4" && err == nil && len(entries) == 0 {
			name += " without a journal"
		}
		return name, nil
	}
	return fmt.Sprintf("a file system of type %#x", fs.Type), nil
}
