package machine

import (
	"fmt"
	"strings"
)

// instanceFault reports the GPU instances that somebody has made and no workload
// can use whole. They are not offered, their room is taken, and the GPU is well.
func (g *GPU) instanceFault() (Fault, bool) {
	var found []string
	for i := range g.MIG.Instances {
		instance := &g.MIG.Instances[i]
		if why := instance.unusable(&g.MIG); why != "" {
			found = append(found, fmt.Sprintf("GPU instance %d (memory units %d to %d) %s",
				instance.ID, instance.Placement.Start, instance.Placement.Start+instance.Placement.Size-1, why))
		}
	}
	return Fault{
		Device: g.Address.String(),
		Kind:   FaultInstanceUnusable,
		Message: fmt.Sprintf("%s: not offered, and its room is taken. Destroy its compute instances (nvidia-smi mig -i %[2]s -gi ID -dci), "+
			"then make one over all of it (nvidia-smi mig -i %[2]s -gi ID -cci), or destroy it, too (nvidia-smi mig -i %[2]s -gi ID -dgi)",
			strings.Join(found, "; "), g.Address),
	}, len(found) > 0
}

// unusable says why a workload cannot use the instance whole; empty where it can.
func (i *GPUInstance) unusable(m *MIG) string {
	profile, ok := m.Profile(i.ProfileID)
	if !ok {
		return fmt.Sprintf("has profile %d, which the driver does not describe", i.ProfileID)
	}
	switch n := len(i.ComputeInstances); {
	case i.Withheld:
		return fmt.Sprintf("of profile %s may be a claim's whose record was damaged (claims/set-aside in the plugin's directory): it is held back until that claim's Pods have ended and the file is removed", profile.Name)
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

// AllFaults are the machine's faults, those of its GPUs' instances, and those of what
// the administrator has declared.
func (m *Machine) AllFaults() []Fault {
	faults := m.Faults[:len(m.Faults):len(m.Faults)]
	for i := range m.GPUs {
		if fault, ok := m.GPUs[i].instanceFault(); ok {
			faults = append(faults, fault)
		}
	}
	return append(faults, m.networkFaults()...)
}
