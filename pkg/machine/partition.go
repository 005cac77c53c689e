package machine

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
