package simulator

import (
	"fmt"
	"strings"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Describe is the GPU as a driver should come to see it.
func (g GPU) Describe() machine.GPU {
	d := machine.GPU{
		UUID:              g.Spec.UUID,
		Address:           g.Spec.Address,
		Index:             g.Index,
		Minor:             g.Spec.Minor,
		ProductName:       g.Model.ProductName,
		Brand:             g.Model.Brand,
		Architecture:      g.Model.Architecture,
		ComputeCapability: g.Model.ComputeCapability,
		Memory:            g.Model.Memory,
		Multiprocessors:   g.Model.Multiprocessors,
		Engines:           g.Model.Engines(),
		ECCEnabled:        g.Spec.ECC,
		ComputeMode:       g.ComputeMode,
		LimitsCgroups:     g.saysLimits(),
		MIG:               g.mig(),
		Location:          machine.Location{NUMANode: -1},
	}
	if g.memoryUnknown() {
		d.Memory = machine.Memory{}
	}
	if !g.TellsProfiles() {
		d.Engines = machine.Engines{}
	}
	if f := g.Spec.Fabric; f != nil {
		d.NVLinkDomain = fmt.Sprintf("%s.%d", strings.ToLower(f.ClusterUUID), f.Clique)
	}
	switch {
	case g.Recovery == RecoveryNone:
	case g.ReportsRecovery:
		d.Health = machine.Health{
			Reason:  machine.FaultResetRequired,
			Message: "the GPU asks to be reset: stop what uses it, then run nvidia-smi --gpu-reset",
		}
	default:
		d.Health = machine.Health{Reason: machine.FaultXid, Message: "the driver reported a critical Xid"}
	}
	return d
}

func (g GPU) mig() machine.MIG {
	if g.Model.MIG == nil {
		return machine.MIG{}
	}
	m := machine.MIG{Capable: true, Enabled: g.MIGEnabled, Pending: g.MIGPending, OnDemand: g.Model.MIG.OnDemand}
	if !g.TellsProfiles() || g.hidesPartitions() {
		return m
	}
	m.Instances = g.cloneInstances()
	for _, p := range g.Model.MIG.Profiles {
		m.Profiles = append(m.Profiles, p.MIGProfile)
	}
	return m
}

// TellsProfiles says whether the driver describes the GPU's MIG profiles as it is now.
func (g GPU) TellsProfiles() bool { return g.MIGEnabled || !g.Has(FaultProfilesNeedMIG) }

// hidesPartitions says whether an agent may not see how the GPU is divided.
func (g GPU) hidesPartitions() bool {
	return g.forbids("nvmlDeviceGetGpuInstancePossiblePlacements") || g.MIGEnabled && g.forbids("nvmlDeviceGetGpuInstances")
}

// getMemoryLimits is how a GPU is asked whether it has limits.
const getMemoryLimits = "nvmlDeviceGetMemoryLimits"

func (g GPU) memoryUnknown() bool {
	return g.Has(FaultMemoryNotSupported) || g.forbids("nvmlDeviceGetMemoryInfo")
}

// faults are what Describe reports beside the GPU, or instead of it.
func (g GPU) faults() []machine.Fault {
	var faults []machine.Fault
	add := func(kind machine.FaultKind, message string) {
		faults = append(faults, machine.Fault{Device: g.Spec.Address.String(), Kind: kind, Message: message})
	}
	switch {
	case g.Has(FaultLost):
		add(machine.FaultLost, "the GPU fell off the bus: reboot the node")
		return faults
	case g.Has(FaultResetRequired):
		add(machine.FaultResetRequired, "the GPU must be reset: stop what uses it, then run nvidia-smi --gpu-reset")
		return faults
	}
	if g.memoryUnknown() {
		add(machine.FaultMemoryUnknown, "the GPU does not say how much memory it has: it is offered with a capacity of 0 bytes")
	}
	if g.MIGEnabled && g.hidesPartitions() {
		add(machine.FaultMIGUnusable, "it is in MIG mode, and its partitions can be neither seen nor made: run the agent with privileges")
	}
	if g.forbids(getMemoryLimits) {
		add(machine.FaultUnreadable, "whether the driver limits containers cannot be asked: run the agent with privileges")
	}
	return faults
}

// describeDelay is how much longer it takes to ask the GPU for everything: all calls
// that only look, but for what is asked in order to watch or to make something.
func (g GPU) describeDelay() time.Duration {
	var total time.Duration
	for call, delay := range g.Delays {
		switch call {
		case "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceGetGpuInstanceRemainingCapacity":
			continue
		}
		if strings.Contains(call, "Get") {
			total += delay
		}
	}
	return total + g.Delays[AnyCall]
}

// describeDelay is the slowest GPU's: they are asked at the same time.
func (s *State) describeDelay() (most time.Duration) {
	for i := range s.GPUs {
		most = max(most, s.GPU(i).describeDelay())
	}
	return most
}
