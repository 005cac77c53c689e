package machine

import (
	"slices"
	"strconv"
	"strings"
)

// Enforcement says how well a share's memory is kept to it.
type Enforcement string

// Levels of enforcement.
const (
	EnforcementStrict     Enforcement = "Strict"     // the driver limits what a container's processes allocate together
	EnforcementBestEffort Enforcement = "BestEffort" // MPS limits those who let it
	EnforcementNone       Enforcement = "None"       // nothing is limited
)

// namespaces: the branch of drivers that brought protocol 3 of MPS, and memory limits of
// cgroups (NVIDIA, "MPS v3 Interface"; nvml.h, nvmlDeviceSetMemoryLimits_v1).
const namespaces = 615

func (d Driver) branch() int {
	branch, _, _ := strings.Cut(d.Version, ".")
	n, err := strconv.Atoi(branch)
	if err != nil {
		return 0
	}
	return n
}

// MPSProtocol is the version of the control daemon's interface.
func (d Driver) MPSProtocol() int {
	if d.branch() >= namespaces {
		return 3
	}
	return 2
}

// LimitsCgroups says whether drivers of this branch have memory limits of cgroups. A GPU
// can lack them all the same.
func (d Driver) LimitsCgroups() bool { return d.branch() >= namespaces }

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

// Enforces says how well this machine keeps shares of a GPU, of a kind, to their memory.
// The limits of MPS are none that hold, not those of namespaces either: a client whose
// environment limits it on a GPU that it does not see has none of them (seen in the field).
func (m *Machine) Enforces(g *GPU, k Kind) Enforcement {
	switch {
	case m.CgroupV2 && g.LimitsCgroups:
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
	return DefaultTimeSliceClients
}

// ClientsOf is how many claims at most have a share of that size of one GPU.
func (m *Machine) ClientsOf(s *Size) int {
	if s.Clients > 0 {
		return s.Clients
	}
	return m.Clients(s.Kind)
}

// shares are the devices of which several claims have a share at a time: one of each
// kind, one of each size that fits the GPU, and those that are kept.
func (m *Machine) shares(g *GPU) []Device {
	var devices []Device
	for _, kind := range m.sharedAs(g) {
		name := string(kind) + "-" + g.Address.Label()
		devices = append(devices, Device{Name: name, Kind: kind, GPU: g})
		for i := range m.Sharing.Sizes {
			size := &m.Sharing.Sizes[i]
			if _, fits := size.Each(g.Memory.Usable()); fits && size.Kind == kind {
				devices = append(devices, Device{Name: name + "-" + size.Name, Kind: kind, GPU: g, Size: size})
			}
		}
	}
	for _, name := range m.Sharing.Kept {
		d, ok := m.earlierSize(g, name)
		if ok && !slices.ContainsFunc(devices, func(other Device) bool { return other.Name == name }) {
			d.Size.Memory = MinShare
			devices = append(devices, d)
		}
	}
	return devices
}

// sharedAs are the kinds of share that the GPU can be handed out as.
func (m *Machine) sharedAs(g *GPU) []Kind {
	switch {
	case g.MIG.Enabled:
		return nil
	case !g.MPS() || m.Sharing.WithoutMPS:
		return []Kind{KindTimeSlice}
	}
	return []Kind{KindMPS, KindTimeSlice}
}

// earlierSize is a share of a size that is not offered now. It may have been when a
// claim was given it: what the claim has of the GPU is in its allocation, so that
// nothing need be known of the size but the name, which ends the device's.
func (m *Machine) earlierSize(g *GPU, name string) (Device, bool) {
	for _, kind := range m.sharedAs(g) {
		size, ok := strings.CutPrefix(name, string(kind)+"-"+g.Address.Label()+"-")
		if ok && len(size) <= MaxSizeName && sizeName.MatchString(size) {
			return Device{Name: name, Kind: kind, GPU: g, Size: &Size{Name: size, Kind: kind}}, true
		}
	}
	return Device{}, false
}
