package main

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// memory is where Linux has files in memory, for whoever wants to.
const memory = "/dev/shm"

// memoryNeeded is what tests may take of it at a time, in bytes.
const memoryNeeded = 2 << 30

// inMemory has a command's temporary files in memory, where there is enough and what
// lies there can be run and opened: tests make thousands of small files for simulated
// machines, which a disk takes ten times as long for. What go builds stays on the disk.
func inMemory(argv []string) []string {
	var fs unix.Statfs_t
	if unix.Statfs(memory, &fs) != nil || fs.Type != unix.TMPFS_MAGIC ||
		fs.Flags&(unix.ST_NOEXEC|unix.ST_NODEV|unix.ST_RDONLY) != 0 ||
		fs.Bavail*uint64(fs.Bsize) < memoryNeeded || unix.Access(memory, unix.W_OK) != nil {
		return argv
	}
	return slices.Concat([]string{"env", "TMPDIR=" + memory, "GOTMPDIR=" + os.TempDir()}, argv)
}
