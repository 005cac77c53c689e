package machine

import "fmt"

// InstanceFaults reports the GPU instances that somebody has made and no workload
// can use whole. They are not offered, their room is taken, and the GPU is well.
func (g *GPU) InstanceFaults() []Fault {
	var faults []Fault
	for i := range g.MIG.Instances {
		instance := &g.MIG.Instances[i]
		if why := instance.unusable(&g.MIG); why != "" {
			faults = append(faults, Fault{
				Device: g.Address.String(),
				Kind:   FaultInstanceUnusable,
				Message: fmt.Sprintf("GPU instance %d (memory units %d to %d) %s, so it is not offered, and its room is taken: "+
					"destroy it (nvidia-smi mig -i %[5]s -gi %[1]d -dci, then -dgi), or, where it is well but for its compute instances, make one over all of it (-cci)",
					instance.ID, instance.Placement.Start, instance.Placement.Start+instance.Placement.Size-1, why, g.Address),
			})
		}
	}
	return faults
}

// unusable says why a workload cannot use the instance whole; empty where it can.
func (i *GPUInstance) unusable(m *MIG) string {
	profile, ok := m.Profile(i.ProfileID)
	if !ok {
		return fmt.Sprintf("has profile %d, which the driver does not describe", i.ProfileID)
	}
	switch n := len(i.ComputeInstances); {
	case n == 0:
		return fmt.Sprintf("of profile %s has no compute instance", profile.Name)
	case n > 1:
		return fmt.Sprintf("of profile %s has %d compute instances", profile.Name, n)
	case i.ComputeInstances[0].ComputeSlices != profile.ComputeSlices:
		return fmt.Sprintf("of profile %s has a compute instance with %d of its %d slices",
			profile.Name, i.ComputeInstances[0].ComputeSlices, profile.ComputeSlices)
	}
	return ""
}

// AllFaults are the machine's faults and those of its GPU instances.
func (m *Machine) AllFaults() []Fault {
	faults := m.Faults[:len(m.Faults):len(m.Faults)]
	for i := range m.GPUs {
		faults = append(faults, m.GPUs[i].InstanceFaults()...)
	}
	return faults
}
