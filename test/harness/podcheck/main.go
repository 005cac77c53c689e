// Command podcheck runs in a Pod and tells what it holds: which GPUs, partitions and
// RDMA devices it can open and which it cannot, its network interfaces, its
// environment, the driver's files, the metadata. Then it waits to be ended.
//
// It asks the kernel rather than looking at names: it makes a device node for
// each number of GPUs, of MIG's capabilities and of RDMA's verbs and opens it. The device cgroup refuses those that were not
// given (EPERM), before the kernel looks for a driver.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/harness/seen"
)

func main() {
	minors := flag.Int("minors", 16, "how many GPU numbers to try")
	words := flag.Bool("words", false, "tell people, not programs")
	stay := flag.Duration("stay", 0, "how long to stay when asked to end")
	flag.Parse()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)

	r := look(*minors)
	if *words {
		for _, line := range append(r.Words(), seen.LastWord) {
			fmt.Println(line)
		}
	} else if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, "podcheck:", err)
		os.Exit(1)
	}
	<-ended
	<-time.After(*stay)
}

// view is a report in the making.
type view struct{ seen.Report }

func look(minors int) *seen.Report {
	v := view{seen.Report{Env: map[string]string{}, Opened: map[int]string{}, Metadata: map[string]string{}}}
	for _, e := range os.Environ() {
		name, value, _ := strings.Cut(e, "=")
		if slices.ContainsFunc(seen.EnvPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			v.Env[name] = value
		}
	}
	var err error
	v.Nodes, err = filepath.Glob("/dev/nvidia*")
	v.note(err)
	for minor := range minors {
		v.Opened[minor] = open(seen.Major, minor)
	}
	v.Opened[seen.ControlMinor] = open(seen.Major, seen.ControlMinor)
	v.note(v.capabilities(minors))
	v.note(v.network())
	v.note(v.rdma())
	v.note(v.mounts())
	v.note(v.metadata())
	return &v.Report
}

func (v *view) note(err error) {
	if err != nil {
		v.Errors = append(v.Errors, err.Error())
	}
}

// The minors of MIG's capabilities begin with those that are no GPU's; each GPU has
// 15 GPU instances with 8 compute instances each.
const (
	commonCapabilities = 3
	capabilitiesOfGPU  = 15 * (1 + 8)
)

// capabilities looks for nodes of MIG's capabilities, and tries all of them.
func (v *view) capabilities(gpus int) error {
	nodes, err := filepath.Glob("/dev/nvidia-caps/*")
	if err != nil {
		return err
	}
	v.Capabilities = map[string]int{}
	for _, node := range nodes {
		var stat unix.Stat_t
		if err := unix.Stat(node, &stat); err != nil {
			return fmt.Errorf("%s: %w", node, err)
		}
		if major := unix.Major(stat.Rdev); major != seen.CapabilityMajor {
			return fmt.Errorf("%s has major number %d, want %d", node, major, seen.CapabilityMajor)
		}
		v.Capabilities[filepath.Base(node)] = int(unix.Minor(stat.Rdev))
	}
	for minor := range commonCapabilities + gpus*capabilitiesOfGPU {
		if open(seen.CapabilityMajor, minor) != seen.Refused {
			v.CapabilitiesOpened = append(v.CapabilitiesOpened, minor)
		}
	}
	return nil
}

// open tries one of NVIDIA's device numbers: "ok", or the kernel's error by name.
func open(major, minor int) string {
	path := fmt.Sprintf("/dev/podcheck-%d-%d", major, minor)
	if err := syscall.Mknod(path, syscall.S_IFCHR|0o600, int(unix.Mkdev(uint32(major), uint32(minor)))); err != nil {
		return "mknod: " + err.Error()
	}
	defer func() { _ = os.Remove(path) }()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	switch {
	case err == nil:
		_ = f.Close()
		return "ok"
	case errors.Is(err, syscall.EPERM):
		return seen.Refused
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		return "ENXIO" // allowed, and no driver behind it: a simulated GPU
	}
	return err.Error()
}

// mounts finds the driver's files among the mount points.
func (v *view) mounts() error {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if base := filepath.Base(fields[1]); strings.Contains(base, "nvidia") || strings.HasPrefix(base, "libcuda") {
			v.Mounts = append(v.Mounts, fields[1])
		}
	}
	slices.Sort(v.Mounts)
	return nil
}

func (v *view) metadata() error {
	return filepath.WalkDir(seen.MetadataDir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(seen.MetadataDir, path)
		v.Metadata[name] = string(content)
		return err
	})
}
