package machine

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Partition is one profile at one placement of a GPU: made when it is claimed, or
// there already.
type Partition struct {
	Profile   *MIGProfile
	Placement Placement
	// Instance is set where somebody else has made the partition: it is offered as
	// it is, and stays when it is released.
	Instance *GPUInstance
}

// Static says whether the partition is there already.
func (p *Partition) Static() bool { return p.Instance != nil }

// Partitions lists the GPU's partitions that can be handed out, in the order of
// its profiles. A GPU whose MIG mode takes a reset has none until somebody has
// switched it. Those that were made by others are offered where a workload can
// use them whole, and nothing that overlaps them, or takes more than they leave.
func (g *GPU) Partitions() []Partition {
	if !g.MIG.Enabled && !g.MIG.OnDemand {
		return nil
	}
	var partitions []Partition
	left := g.MIG.Left()
	for i := range g.MIG.Profiles {
		profile := &g.MIG.Profiles[i]
		for _, at := range profile.Placements {
			instance := g.MIG.overlapping(at)
			switch {
			case instance == nil && left.has(profile):
				partitions = append(partitions, Partition{Profile: profile, Placement: at})
			case instance != nil && instance.ProfileID == profile.ID && instance.Placement == at && instance.whole(profile):
				partitions = append(partitions, Partition{Profile: profile, Placement: at, Instance: instance})
			}
		}
	}
	return partitions
}

// Left is what the existing instances leave of the totals. MemoryUnits stays the
// number of all: which of them are taken is for placements to say.
func (m *MIG) Left() MIGTotals {
	left := m.Totals()
	for _, instance := range m.Instances {
		profile, ok := m.Profile(instance.ProfileID)
		if !ok {
			continue // of a profile that the driver does not name: its placement excludes
		}
		left.ComputeSlices = max(0, left.ComputeSlices-profile.ComputeSlices)
		left.Engines = left.Engines.minus(profile.Engines)
		left.Media = left.Media && !profile.Media
	}
	return left
}

func (t MIGTotals) has(p *MIGProfile) bool {
	return p.ComputeSlices <= t.ComputeSlices && (t.Media || !p.Media) && p.Engines.within(t.Engines)
}

func (e Engines) minus(taken Engines) Engines {
	return Engines{
		Copy:     max(0, e.Copy-taken.Copy),
		Decoders: max(0, e.Decoders-taken.Decoders),
		Encoders: max(0, e.Encoders-taken.Encoders),
		JPEG:     max(0, e.JPEG-taken.JPEG),
		OFA:      max(0, e.OFA-taken.OFA),
	}
}

func (e Engines) within(most Engines) bool {
	return e.Copy <= most.Copy && e.Decoders <= most.Decoders && e.Encoders <= most.Encoders &&
		e.JPEG <= most.JPEG && e.OFA <= most.OFA
}

func (e Engines) sum() int { return e.Copy + e.Decoders + e.Encoders + e.JPEG + e.OFA }

func (m *MIG) overlapping(at Placement) *GPUInstance {
	for i := range m.Instances {
		if m.Instances[i].Placement.Overlaps(at) {
			return &m.Instances[i]
		}
	}
	return nil
}

// whole says whether one compute instance spans the GPU instance.
func (i *GPUInstance) whole(p *MIGProfile) bool {
	return len(i.ComputeInstances) == 1 && i.ComputeInstances[0].ComputeSlices == p.ComputeSlices
}

// partitions of all GPUs, the small before the large, so that who asks for "at
// least so much" gets the smallest that has it; of one profile, one GPU is filled
// before the next is opened, and from its end, which is where a partition blocks
// the fewest larger ones (docs/packing.md).
func (m *Machine) partitions() []Device {
	var devices []Device
	for i := range m.GPUs {
		gpu := &m.GPUs[i]
		for _, p := range gpu.Partitions() {
			devices = append(devices, Device{Name: gpu.partitionName(&p), Kind: KindMIG, GPU: gpu, Partition: &p})
		}
	}
	slices.SortStableFunc(devices, func(a, b Device) int {
		p, q := a.Partition, b.Partition
		return cmp.Or(
			cmp.Compare(p.Profile.Memory, q.Profile.Memory),
			cmp.Compare(p.Profile.ComputeSlices, q.Profile.ComputeSlices),
			cmp.Compare(p.Profile.Engines.sum(), q.Profile.Engines.sum()),
			cmp.Compare(p.Profile.Name, q.Profile.Name),
			a.GPU.Address.Compare(b.GPU.Address),
			cmp.Compare(q.Placement.Start, p.Placement.Start),
		)
	})
	return devices
}

// partitionName is "mig-1b-00-1g10gb-4": the profile as far as a DNS label takes
// it, and the placement's start.
func (g *GPU) partitionName(p *Partition) string {
	return string(KindMIG) + "-" + g.Address.Label() + "-" + profileLabel(p.Profile.Name) + "-" + strconv.Itoa(p.Placement.Start)
}

// profileLabel is the profile's name without what a DNS label cannot have:
// "1g.10gb+me.all" is "1g10gbmeall", "1g.24gb-me" is "1g24gb-me".
func profileLabel(name string) string {
	return strings.NewReplacer(".", "", "+", "").Replace(strings.ToLower(name))
}
