package plan

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Share is how a prepared device is shared, and what the claim has of it.
type Share struct {
	// Kind is KindMPS or KindTimeSlice.
	Kind machine.Kind `json:"kind"`
	// Memory in bytes and Threads in percent of the multiprocessors; 0 is no limit.
	Memory  uint64 `json:"memory,omitempty"`
	Threads int    `json:"threads,omitempty"`
	// LowPriority: the other clients come first.
	LowPriority bool `json:"lowPriority,omitempty"`
	// Enforcement of Memory that this node gives.
	Enforcement machine.Enforcement `json:"enforcement,omitempty"`
	// ByDriver: the driver limits what a container's processes allocate together.
	ByDriver bool `json:"byDriver,omitempty"`
}

// Limits of a namespace.
type Limits struct {
	Threads int               `json:"threads,omitempty"` // percent
	Memory  map[string]uint64 `json:"memory,omitempty"`  // bytes, by GPU
}

// shareOf says how a device is to be shared; nil where it is not. Its errors name
// field and value of the configuration, and what would work.
func shareOf(r Result, d machine.Device, m *machine.Machine) (*Share, error) {
	if err := fits(r.Config, d); err != nil {
		return nil, err
	}
	kind := cmp.Or(r.Config.Sharing, machine.KindGPU)
	if d.Kind.SharesGPU() {
		kind = d.Kind
	}
	if !kind.SharesGPU() {
		return nil, nil
	}
	share := &Share{
		Kind: kind, Memory: r.Config.MPS.Memory, Threads: r.Config.MPS.ThreadPercentage, LowPriority: r.Config.LowPriority,
	}
	if d.Kind.SharesGPU() {
		share.Memory, share.Threads = r.Memory, r.Compute
	}
	var err error
	share.Enforcement, err = enforcement(r.Config.Enforcement, share, d, m)
	share.ByDriver = share.Enforcement == machine.EnforcementStrict
	if share.Enforcement == machine.EnforcementNone {
		share.Memory = 0
	}
	return share, err
}

// fits refuses configuration that is for another kind of device, or another GPU.
func fits(c Config, d machine.Device) error {
	if err := c.Suits(d.Kind); err != nil {
		return err
	}
	switch {
	case c.mps(d.Kind) && !d.GPU.MPS():
		return failure.New(failure.Unsupported, "sharing.strategy: MPS, but %s has compute capability %s, and MPS has limits from 7.0 on: use TimeSlicing", d.GPU.ProductName, d.GPU.ComputeCapability)
	case c.MPS.Memory > usable(d):
		return failure.New(failure.Invalid, "sharing.mps.memoryLimit: %d bytes, but the device has %d: the most that works is %dMi", c.MPS.Memory, usable(d), usable(d)>>20)
	}
	return nil
}

// mps says whether a device of that kind is shared by MPS.
func (c Config) mps(k machine.Kind) bool { return k == machine.KindMPS || c.Sharing == machine.KindMPS }

// Suits says whether the configuration is for devices of that kind, whatever GPU or NIC
// is behind them: failure.Invalid or Unsupported with field, value and cure where it is
// not.
func (c Config) Suits(k machine.Kind) error {
	mig, mps := k == machine.KindMIG, c.mps(k)
	switch {
	case k == machine.KindRDMA:
		return c.NIC.withoutInterface(staysWithHost)
	case c.ComputeMode != "" && mig:
		return failure.New(failure.Invalid, "computeMode: %s, but a partition's compute mode is always Default: leave it out, or claim a whole GPU", c.ComputeMode)
	case c.ComputeMode != "" && k.SharesGPU():
		return failure.New(failure.Invalid, "computeMode: %s, but who else has a share of the GPU needs another: leave it out, or claim a whole GPU", c.ComputeMode)
	case k.SharesGPU() && c.Sharing != "" && c.Sharing != k:
		return failure.New(failure.Invalid, "sharing.strategy: this device is shared as %s: leave it out, or claim a device of the other kind", k)
	case k.SharesGPU() && c.MPS != MPSConfig{}:
		return failure.New(failure.Invalid, "sharing.mps: limits of a share are what the claim requests of its capacity: request memory and compute there")
	case !mps && (c.MPS != MPSConfig{} || c.LowPriority):
		return failure.New(failure.Invalid, "sharing.mps: the device is not shared by MPS: set sharing.strategy to MPS, or leave it out")
	case mps && c.Interval != "":
		return failure.New(failure.Invalid, "sharing.timeSlicing.interval: %s, but the device is shared by MPS, whose clients run side by side: leave it out", c.Interval)
	case mig && c.Interval != "":
		return failure.New(failure.Invalid, "sharing.timeSlicing.interval: %s, but it is a whole GPU's: leave it out, or claim a whole GPU", c.Interval)
	case c.Enforcement == machine.EnforcementStrict && c.Sharing.SharesGPU() && !k.SharesGPU():
		return failure.New(failure.Unsupported, "enforcement: Strict, but processes that share a device which the claim has alone are not limited together: the nearest that works is %s; or claim a share", alone(c.Sharing))
	}
	return nil
}

// alone is how well processes are limited that share a device which their claim has
// alone: each by itself, by MPS.
func alone(strategy machine.Kind) machine.Enforcement {
	if strategy == machine.KindMPS {
		return machine.EnforcementBestEffort
	}
	return machine.EnforcementNone
}

func usable(d machine.Device) uint64 {
	if d.Partition != nil {
		return d.Partition.Profile.Memory
	}
	return d.GPU.Memory.Usable()
}

// enforcement is what the node gives of what is wanted.
func enforcement(wanted machine.Enforcement, s *Share, d machine.Device, m *machine.Machine) (machine.Enforcement, error) {
	given := m.Enforces(d.GPU, s.Kind)
	if !d.Kind.SharesGPU() {
		given = alone(s.Kind)
	}
	unknown := d.Kind.SharesGPU() && s.Memory == 0 // the GPU does not say how much it has
	if unknown {
		given = machine.EnforcementNone
	}
	switch {
	case wanted == machine.EnforcementNone:
		return machine.EnforcementNone, nil
	case wanted == machine.EnforcementStrict && unknown:
		return "", failure.New(failure.Unsupported,
			"enforcement: Strict, but the GPU does not say how much memory it has, so that none is limited: the nearest that works is %s", given)
	case wanted == machine.EnforcementStrict && given != machine.EnforcementStrict:
		return "", failure.New(failure.Unsupported,
			"enforcement: Strict, but GPU %s gives %s (%s), and Strict takes a driver that limits containers on that GPU, of branch 615 or later, and cgroup version 2: the nearest that works is %s; or select devices by device.attributes[\"dovetail.dev\"].memoryEnforcement",
			d.GPU.UUID, given, whyNotStrict(m), given)
	}
	return given, nil
}

// whyNotStrict is what a GPU that does not give Strict lacks.
func whyNotStrict(m *machine.Machine) string {
	if !m.CgroupV2 { // then no GPU was asked
		return fmt.Sprintf("driver %s, containers in cgroup version 1", m.Driver.Version)
	}
	return fmt.Sprintf("driver %s does not limit what containers allocate of it", m.Driver.Version)
}

// mps lists the steps for control daemons: one over all GPUs that the claim shares
// with others, one over those that it has alone, and one for each partition, since a
// process uses but one.
func (p *Plan) mps(m *machine.Machine) []Step {
	var shared, alone []Member
	var sets [][]Member
	for i := range m.GPUs { // in their order, so that a set is the same whatever the claim's
		gpu := m.GPUs[i].UUID
		for _, d := range p.Devices {
			switch {
			case d.GPU != gpu || d.AdminAccess || d.Share == nil || d.Share.Kind != machine.KindMPS:
			case d.Kind == machine.KindMIG:
				sets = append(sets, []Member{p.member(d)})
			case d.Kind.SharesGPU():
				shared = add(shared, gpu)
			default:
				alone = add(alone, gpu)
			}
		}
	}
	for _, set := range [][]Member{shared, alone} {
		if len(set) > 0 {
			sets = append(sets, set)
		}
	}
	var steps []Step
	for _, set := range sets {
		for _, member := range set {
			if member.Partition == nil && member.Static == "" {
				steps = append(steps, Step{Kind: SetComputeMode, GPU: member.GPU, ComputeMode: machine.ComputeModeExclusiveProcess, ForMPS: true})
			}
		}
		steps = append(steps, Step{Kind: StartMPS, GPU: set[0].GPU, Set: set})
	}
	if m.Driver.MPSProtocol() >= 3 && len(shared) > 0 {
		steps = append(steps, p.namespaces(shared)...)
	}
	return steps
}

func add(set []Member, gpu string) []Member {
	if len(set) > 0 && set[len(set)-1].GPU == gpu {
		return set
	}
	return append(set, Member{GPU: gpu})
}

func (p *Plan) member(d Device) Member {
	member := Member{GPU: d.GPU}
	if d.Static != nil {
		member.Static = d.Static.ComputeInstances[0].UUID
		return member
	}
	for _, s := range p.Steps {
		if s.Kind == MakeComputeInstance && s.Partition.Device == d.Name {
			member.Partition = s.Partition
		}
	}
	return member
}

// namespaces are one a request: its processes see all of the request's GPUs, and those
// of the claim's other requests, where a container has them all. It has the name of its
// first share, which is the claim's alone.
func (p *Plan) namespaces(set []Member) []Step {
	var steps []Step
	made := map[string]bool{}
	for _, d := range p.Devices {
		if d.AdminAccess || d.Kind != machine.KindMPS || made[d.Request] {
			continue
		}
		made[d.Request] = true
		limits := LimitsOf(d, p.Devices)
		steps = append(steps, Step{
			Kind: MakeNamespace, GPU: set[0].GPU, Set: set, Request: d.Request, Namespace: "share-" + d.ShareID, Limits: &limits,
		})
	}
	return steps
}

// LimitsOf are those of a request's clients: on each GPU what the request has of it,
// added up, and on the GPUs of the claim's other requests what those have, so that none
// is without a limit.
func LimitsOf(d Device, all []Device) Limits {
	if d.Kind == machine.KindMIG { // a control daemon of its own
		return Limits{Threads: d.Share.Threads, Memory: memoryOf(map[string]uint64{d.GPU: d.Share.Memory})}
	}
	threads, own := map[string]int{}, map[string]uint64{}
	others := map[string]map[string]uint64{} // by request and GPU
	for _, o := range all {
		switch {
		case o.AdminAccess || o.Share == nil || o.Share.Kind != machine.KindMPS || o.Kind != d.Kind:
		case o.Request == d.Request:
			threads[o.GPU] += o.Share.Threads
			own[o.GPU] += o.Share.Memory
		default:
			if others[o.Request] == nil {
				others[o.Request] = map[string]uint64{}
			}
			others[o.Request][o.GPU] += o.Share.Memory
		}
	}
	for _, other := range others {
		for gpu, memory := range other {
			if _, has := threads[gpu]; !has {
				own[gpu] = max(own[gpu], memory)
			}
		}
	}
	most := 0
	for _, percentage := range threads {
		most = max(most, percentage)
	}
	return Limits{Threads: min(most, 100), Memory: memoryOf(own)}
}

// memoryOf leaves out what has no limit.
func memoryOf(limits map[string]uint64) map[string]uint64 {
	maps.DeleteFunc(limits, func(_ string, memory uint64) bool { return memory == 0 })
	return limits
}
