// Package seen is what a Pod says of the GPUs that it holds: the words that
// podcheck prints inside, and that tests and the demo read outside. It imports
// the standard library only.
package seen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Report is what one container sees.
type Report struct {
	// Env are the variables that name GPUs: NVIDIA_… and DOVETAIL_….
	Env map[string]string `json:"env"`
	// Nodes are the NVIDIA device nodes in /dev.
	Nodes []string `json:"nodes"`
	// Opened tells, for each minor of NVIDIA's major number, what the kernel
	// says to whoever opens it: EPERM is the device cgroup's refusal.
	Opened map[int]string `json:"opened"`
	// Mounts are the driver's files that were mounted.
	Mounts []string `json:"mounts"`
	// Metadata holds the files below MetadataDir, by their path there.
	Metadata map[string]string `json:"metadata"`
	// Errors are what could not be looked at.
	Errors []string `json:"errors,omitempty"`
}

// MetadataDir is where Kubernetes puts the devices' attributes (KEP-5304).
const MetadataDir = "/var/run/kubernetes.io/dra-device-attributes"

// Major of NVIDIA's GPUs (devices.txt of the kernel), and the minor of the
// control node that all of them share.
const (
	Major        = 195
	ControlMinor = 255
)

// Refused is what opening a device says that the container was not given.
const Refused = "EPERM"

// LastWord ends what podcheck tells people.
const LastWord = "that is all; waiting to be ended"

// GPUs are the UUIDs of GPUs by the names of the variables that have them.
func (r *Report) GPUs() map[string]string {
	gpus := map[string]string{}
	for name, value := range r.Env {
		if strings.HasPrefix(name, "DOVETAIL_") && strings.HasPrefix(value, "GPU-") {
			gpus[name] = value
		}
	}
	return gpus
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
		if strings.HasPrefix(name, "DOVETAIL_") {
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
	return append([]string{
		fmt.Sprintf("I can open %s; the kernel refuses me %d other GPU numbers", strings.Join(may, ", "), refused),
		fmt.Sprintf("I have %d files of the driver and %d of metadata", len(r.Mounts), len(r.Metadata)),
	}, names...)
}
