package machine

import (
	"cmp"
	"slices"
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

// Partitions lists the GPU's partitions that can be handed out: those that can be
// made, and those that others have made where a workload can use them whole. What
// overlaps an existing one, or takes more than the existing ones leave, is not
// among them. A GPU whose MIG mode takes a reset has none until somebody has
// switched it.
func (g *GPU) Partitions() []Partition {
	if !g.MIG.Enabled && !g.MIG.OnDemand {
		return nil
	}
	var partitions []Partition
	left := g.MIG.Left()
	for i := range g.MIG.Profiles {
		profile := &g.MIG.Profiles[i]
		if !left.has(profile) {
			continue
		}
		starts := map[int]bool{} // a start is the end of a name
		for _, at := range profile.Placements {
			if at.valid() && !starts[at.Start] && g.MIG.overlapping(at) == nil {
				partitions = append(partitions, Partition{Profile: profile, Placement: at})
				starts[at.Start] = true
			}
		}
	}
	for i := range g.MIG.Instances {
		instance := &g.MIG.Instances[i]
		if profile, ok := g.MIG.Profile(instance.ProfileID); ok && instance.unusable(&g.MIG) == "" {
			partitions = append(partitions, Partition{Profile: profile, Placement: instance.Placement, Instance: instance})
		}
	}
	return partitions
}

// partitions of all GPUs, the small before the large, so that who asks for "at
// least so much" gets the smallest that has it. Of one profile those come first
// that are there already, since they take nothing from anybody; then one GPU is
// filled before the next is opened, and from its end, which is where a partition
// blocks the fewest larger ones (docs/packing.md).
func (m *Machine) partitions() []Device {
	var devices []Device
	for i := range m.GPUs {
		gpu := &m.GPUs[i]
		labels := profileLabels(gpu.MIG.Profiles)
		for _, p := range gpu.Partitions() {
			devices = append(devices, Device{Name: gpu.partitionName(labels[p.Profile], p.Placement), Kind: KindMIG, GPU: gpu, Partition: &p})
		}
	}
	slices.SortStableFunc(devices, func(a, b Device) int {
		p, q := a.Partition, b.Partition
		return cmp.Or(
			cmp.Compare(p.Profile.Memory, q.Profile.Memory),
			cmp.Compare(p.Profile.ComputeSlices, q.Profile.ComputeSlices),
			cmp.Compare(p.Profile.Engines.sum(), q.Profile.Engines.sum()),
			cmp.Compare(p.Profile.Name, q.Profile.Name),
			cmp.Compare(origin(p), origin(q)),
			a.GPU.Address.Compare(b.GPU.Address),
			cmp.Compare(q.Placement.Start, p.Placement.Start),
		)
	})
	return devices
}

// origin orders what is there before what has to be made.
func origin(p *Partition) int {
	if p.Static() {
		return 0
	}
	return 1
}
