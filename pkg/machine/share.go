package machine

import (
	"strconv"
	"strings"
)

// Size is a size of share that an administrator offers under a name of its own: a
// device of which every share is of that size.
type Size struct {
	// Name ends device names: a DNS label of at most MaxSizeName characters.
	Name string `json:"name"`
	// Kind is KindMPS or KindTimeSlice.
	Kind Kind `json:"kind"`
	// Memory of one share, in bytes.
	Memory uint64 `json:"memory"`
	// Compute is the percentage of the GPU's multiprocessors that one share
	// reserves, and is held to; 0 reserves nothing. KindMPS alone has it.
	Compute int `json:"compute,omitempty"`
}

// MaxSizeName is how long the name of a size can be, in characters.
const MaxSizeName = 40

// Sharing is what an administrator says of shares.
type Sharing struct {
	// TimeSliceClients is how many claims at most have a time slice of one GPU.
	// Default: 16.
	TimeSliceClients int    `json:"timeSliceClients,omitempty"`
	Sizes            []Size `json:"sizes,omitempty"`
}

const defaultTimeSliceClients = 16

// Enforcement says how well a share's memory is kept to it.
type Enforcement string

// Levels of enforcement.
const (
	EnforcementStrict     Enforcement = "Strict"     // all that a claim's containers allocate together is limited
	EnforcementBestEffort Enforcement = "BestEffort" // each process is limited by itself
	EnforcementNone       Enforcement = "None"       // nothing is limited
)

// MPSProtocol is the version of the control daemon's interface: 3 came with the
// drivers of branch 615 (NVIDIA, "MPS v3 Interface").
func (d Driver) MPSProtocol() int {
	branch, _, _ := strings.Cut(d.Version, ".")
	if n, err := strconv.Atoi(branch); err == nil && n >= 615 {
		return 3
	}
	return 2
}

// MPSClients is how many processes one MPS server takes (NVIDIA, "Multi-Process
// Service").
func (d Driver) MPSClients() int {
	if d.CUDA.Major >= 13 {
		return 60
	}
	return 48
}

// MPS says whether the GPU can be shared by MPS with limits: since Volta.
func (g *GPU) MPS() bool { return g.ComputeCapability.Major >= 7 }

// Enforces says how well this machine keeps shares of a kind to their memory.
func (m *Machine) Enforces(k Kind) Enforcement {
	switch {
	case k == KindMPS && m.Driver.MPSProtocol() >= 3:
		return EnforcementStrict
	case k == KindMPS:
		return EnforcementBestEffort
	}
	return EnforcementNone
}

// Clients is how many claims at most have a share of that kind of one GPU.
func (m *Machine) Clients(k Kind) int {
	switch {
	case k == KindMPS:
		return m.Driver.MPSClients()
	case m.Sharing.TimeSliceClients > 0:
		return m.Sharing.TimeSliceClients
	}
	return defaultTimeSliceClients
}

// shares are the devices of which several claims have a share at a time: one of each
// kind, and one of each size that fits the GPU.
func (m *Machine) shares(g *GPU) []Device {
	if g.MIG.Enabled {
		return nil
	}
	var devices []Device
	for _, kind := range []Kind{KindMPS, KindTimeSlice} {
		if kind == KindMPS && !g.MPS() {
			continue
		}
		name := string(kind) + "-" + g.Address.Label()
		devices = append(devices, Device{Name: name, Kind: kind, GPU: g})
		for i := range m.Sharing.Sizes {
			if size := &m.Sharing.Sizes[i]; size.Kind == kind && size.Memory <= g.Memory.Usable() {
				devices = append(devices, Device{Name: name + "-" + size.Name, Kind: kind, GPU: g, Size: size})
			}
		}
	}
	return devices
}
