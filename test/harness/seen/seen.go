// Package seen is what a Pod says of the GPUs and NICs that it holds: the words that
// podcheck prints inside, and that tests and the demo read outside. It imports
// the standard library only.
package seen

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Report is what one container sees.
type Report struct {
	// Env are the variables that name devices: those with EnvPrefixes.
	Env map[string]string `json:"env"`
	// Nodes are the NVIDIA device nodes in /dev.
	Nodes []string `json:"nodes"`
	// Opened tells, for each minor of NVIDIA's major number, what the kernel
	// says to whoever opens it: EPERM is the device cgroup's refusal.
	Opened map[int]string `json:"opened"`
	// Capabilities are the nodes in /dev/nvidia-caps, which open MIG partitions: their
	// minors, by name.
	Capabilities map[string]int `json:"capabilities,omitempty"`
	// CapabilitiesOpened are the minors of all capabilities that the kernel lets the
	// container open, whether it has nodes for them or not.
	CapabilitiesOpened []int `json:"capabilitiesOpened,omitempty"`
	// Interfaces of the Pod's network, by name.
	Interfaces map[string]Interface `json:"interfaces,omitempty"`
	// RDMANodes are the nodes in /dev/infiniband: their numbers, by name.
	RDMANodes map[string]string `json:"rdmaNodes,omitempty"`
	// VerbsOpened are the numbers N of all /dev/infiniband/uverbsN that the kernel lets
	// the container open, whether it has nodes for them or not.
	VerbsOpened []int `json:"verbsOpened,omitempty"`
	// Mounts are the driver's files that were mounted.
	Mounts []string `json:"mounts"`
	// Metadata holds the files below MetadataDir, by their path there.
	Metadata map[string]string `json:"metadata"`
	// Errors are what could not be looked at.
	Errors []string `json:"errors,omitempty"`
}

// Interface is a network interface, with its addresses but for link-local ones.
type Interface struct {
	MAC       string   `json:"mac"`
	MTU       int      `json:"mtu"`
	Up        bool     `json:"up"`
	Addresses []string `json:"addresses,omitempty"`
	// Routes of IPv4 through it: "10.2.0.0/16 via 10.1.0.1", "10.1.0.0/16".
	Routes []string `json:"routes,omitempty"`
}

// EnvPrefixes begin the names of variables that name devices.
var EnvPrefixes = []string{"NVIDIA_", "DOVETAIL_", "NCCL_"}

// Numbers of verbs' device nodes (drivers/infiniband/core/uverbs_main.c of the kernel).
const (
	VerbsMajor   = 231
	VerbsMinor   = 192
	VerbsNumbers = 32
)

// MetadataDir is where Kubernetes puts the devices' attributes (KEP-5304).
const MetadataDir = "/var/run/kubernetes.io/dra-device-attributes"

// Major of NVIDIA's GPUs (devices.txt of the kernel), and the minor of the
// control node that all of them share. CapabilityMajor is a simulated machine's: a
// real driver takes a free one.
const (
	Major           = 195
	ControlMinor    = 255
	CapabilityMajor = 511
)

// Refused is what opening a device says that the container was not given.
const Refused = "EPERM"

// LastWord ends what podcheck tells people.
const LastWord = "that is all; waiting to be ended"

// Devices are the UUIDs of GPUs and partitions, and the names of RDMA devices, by the
// names of the variables that have them.
func (r *Report) Devices() map[string]string {
	devices := map[string]string{}
	for name, value := range r.Env {
		if strings.HasPrefix(name, "DOVETAIL_") {
			devices[name] = value
		}
	}
	return devices
}

// MayOpen lists the GPUs' minors that the container may open.
func (r *Report) MayOpen() []int {
	var minors []int
	for minor, answer := range r.Opened {
		if answer != Refused && minor != ControlMinor {
			minors = append(minors, minor)
		}
	}
	slices.Sort(minors)
	return minors
}

// Words tells people, one line a fact.
func (r *Report) Words() []string {
	names := make([]string, 0, len(r.Env))
	for name := range r.Env {
		if !strings.HasPrefix(name, "NVIDIA_") {
			names = append(names, name+"="+r.Env[name])
		}
	}
	slices.Sort(names)
	refused := 0
	var may []string
	for _, answer := range r.Opened {
		if answer == Refused {
			refused++
		}
	}
	for _, minor := range r.MayOpen() {
		if may == nil {
			may = []string{fmt.Sprintf("/dev/nvidia%d", minor)}
			continue
		}
		may = append(may, strconv.Itoa(minor))
	}
	if len(may) == 0 {
		may = []string{"no GPU"}
	}
	lines := []string{fmt.Sprintf("I can open %s; the kernel refuses me %d other GPU numbers", strings.Join(may, ", "), refused)}
	if caps := slices.Sorted(maps.Keys(r.Capabilities)); len(caps) > 0 {
		lines = append(lines, fmt.Sprintf("of MIG's capabilities I can open %d: %s", len(r.CapabilitiesOpened), strings.Join(caps, ", ")))
	}
	lines = append(lines, r.network()...)
	lines = append(lines, fmt.Sprintf("I have %d files of the driver and %d of metadata", len(r.Mounts), len(r.Metadata)))
	return append(lines, names...)
}

// network tells people of RDMA devices, and of the interfaces beside the Pod's own.
func (r *Report) network() []string {
	if len(r.RDMANodes) == 0 {
		return nil
	}
	lines := []string{fmt.Sprintf("of RDMA I can open %s; of verbs' numbers the kernel refuses me %d",
		strings.Join(slices.Sorted(maps.Keys(r.RDMANodes)), ", "), VerbsNumbers-len(r.VerbsOpened))}
	for _, name := range slices.Sorted(maps.Keys(r.Interfaces)) {
		if i := r.Interfaces[name]; name != "lo" && name != "eth0" {
			lines = append(lines, fmt.Sprintf("I have network interface %s, MTU %d, %s", name, i.MTU, strings.Join(append([]string{i.MAC}, i.Addresses...), ", ")))
		}
	}
	return lines
}
