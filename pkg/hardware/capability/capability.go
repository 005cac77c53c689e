// Package capability finds the device nodes without which a process cannot use a
// MIG partition: one of its GPU instance and one of its compute instance; and the one
// with which it can see all. The driver numbers them ahead for all instances that there can ever be, and keeps
// the numbers while its module is loaded (NVIDIA's MIG user guide, "Device Nodes
// and Capabilities").
package capability

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// Node is a character device.
type Node struct {
	// Path is where the driver's libraries look for it, below any root.
	Path         string
	Major, Minor uint32
}

// Table has the minor numbers of all capabilities.
type Table struct {
	source string
	major  uint32
	minors map[string]uint32 // by name: "monitor", "gpu0/gi5/access", "gpu0/gi5/ci0/access"
}

// Read reads the table below proc, which is "/proc". failure.Absent where the
// driver has none.
func Read(proc string) (*Table, error) {
	major, err := readMajor(filepath.Join(proc, "devices"))
	if err != nil {
		return nil, err
	}
	t := &Table{source: filepath.Join(proc, "driver/nvidia-caps/mig-minors"), major: major, minors: map[string]uint32{}}
	content, err := os.ReadFile(t.source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, failure.New(failure.Absent, "%s does not exist: load an NVIDIA driver that supports MIG", t.source)
	case err != nil:
		return nil, fmt.Errorf("capabilities of MIG: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if minor, err := strconv.ParseUint(number, 10, 32); err == nil {
			t.minors[name] = uint32(minor)
		}
	}
	return t, nil
}

// readMajor looks among the character devices, which come first.
func readMajor(path string) (uint32, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("device numbers: %w: mount the host's /proc at %s", err, filepath.Dir(path))
	}
	characters, _, _ := strings.Cut(string(content), "Block devices:")
	for line := range strings.Lines(characters) {
		number, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "nvidia-caps" {
			continue
		}
		if major, err := strconv.ParseUint(number, 10, 32); err == nil {
			return uint32(major), nil
		}
	}
	return 0, failure.New(failure.Absent, "no nvidia-caps in %s: load the kernel module of an NVIDIA driver that supports MIG", path)
}

// Partition returns the two nodes of a compute instance, that of its GPU instance
// first. gpu is the GPU's minor number: the N of /dev/nvidiaN.
func (t *Table) Partition(gpu, gpuInstance, computeInstance int) ([]Node, error) {
	instance := instanceName(gpu, gpuInstance)
	var nodes []Node
	for _, name := range []string{instance + "access", instance + "ci" + strconv.Itoa(computeInstance) + "/access"} {
		minor, ok := t.minors[name]
		if !ok {
			return nil, failure.New(failure.Absent,
				"no %s in %s: the driver supports no such partition of the GPU with minor number %d", name, t.source, gpu)
		}
		nodes = append(nodes, t.node(minor))
	}
	return nodes, nil
}

// Monitor returns the node that lets who has no privileges see all partitions; false
// where the driver has none.
func (t *Table) Monitor() (Node, bool) {
	minor, ok := t.minors["monitor"]
	return t.node(minor), ok
}

// GPUInstance returns the node of a GPU instance and those of all compute
// instances that it can have, in the order of their numbers; none where the driver
// knows no such instance.
func (t *Table) GPUInstance(gpu, gpuInstance int) []Node {
	prefix := instanceName(gpu, gpuInstance)
	var nodes []Node
	for name, minor := range t.minors {
		if strings.HasPrefix(name, prefix) {
			nodes = append(nodes, t.node(minor))
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Minor, b.Minor) })
	return nodes
}

func instanceName(gpu, gpuInstance int) string {
	return fmt.Sprintf("gpu%d/gi%d/", gpu, gpuInstance)
}

func (t *Table) node(minor uint32) Node {
	return Node{Path: fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", minor), Major: t.major, Minor: minor}
}
