// Package sysfs reads what the kernel's files tell of NICs: PCI functions, their network
// interfaces, RDMA devices and virtual functions. It reads only what any user may read.
// What a file does not say is left out: many answer with an error while a link is down.
package sysfs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Tree is where sysfs is mounted.
type Tree struct {
	root  string
	reads atomic.Int64
}

// New takes the directory: "/sys".
func New(root string) *Tree { return &Tree{root: root} }

// Reads is how many files, links and directories have been read.
func (t *Tree) Reads() int64 { return t.reads.Load() }

// device is the directory of a PCI function.
func (t *Tree) device(address machine.Address) string {
	return filepath.Join(t.root, "bus/pci/devices", address.String())
}

// page is the largest that a file in sysfs can be.
const page = 4096

// read returns a file's text without the line's end, or nothing. These files give all
// in one read.
func (t *Tree) read(path ...string) string {
	t.reads.Add(1)
	fd, err := unix.Open(filepath.Join(path...), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var buffer [page]byte
	n, err := unix.Read(fd, buffer[:])
	if err != nil || n < 0 {
		return ""
	}
	return strings.TrimSpace(string(buffer[:n]))
}

// number reads one that is not negative; otherwise, as for everything unknown, it is 0.
func (t *Tree) number(path ...string) int {
	n, err := strconv.Atoi(t.read(path...))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// hex reads a number such as "0x15b3".
func (t *Tree) hex(path ...string) uint32 {
	n, err := strconv.ParseUint(strings.TrimPrefix(t.read(path...), "0x"), 16, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// link returns the last element of what a link leads to.
func (t *Tree) link(path ...string) string {
	t.reads.Add(1)
	target, err := os.Readlink(filepath.Join(path...))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// list returns the names in a directory, in order.
func (t *Tree) list(path ...string) []string {
	names, _ := t.mustList(path...)
	return names
}

// mustList is for directories that must be there.
func (t *Tree) mustList(path ...string) ([]string, error) {
	t.reads.Add(1)
	directory, err := os.Open(filepath.Join(path...))
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	names, err := directory.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}
