package parameters

import (
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// Plan is a configuration without what Kubernetes adds to it.
func Plan(c *v1alpha1.GPUConfig) plan.Config {
	p := plan.Config{
		ComputeMode: machine.ComputeMode(ptr.Deref(c.ComputeMode, "")),
		Enforcement: machine.Enforcement(ptr.Deref(c.Enforcement, "")),
	}
	if c.Sharing == nil {
		return p
	}
	if c.Sharing.Strategy != nil {
		p.Sharing = strategies[*c.Sharing.Strategy]
	}
	if mps := c.Sharing.MPS; mps != nil {
		p.MPS.ThreadPercentage = int(ptr.Deref(mps.ActiveThreadPercentage, 0))
		p.LowPriority = ptr.Deref(mps.Priority, "") == v1alpha1.MPSPriorityBelowNormal
		if mps.MemoryLimit != nil {
			p.MPS.Memory = uint64(mps.MemoryLimit.Value())
		}
	}
	if slices := c.Sharing.TimeSlicing; slices != nil {
		p.Interval = machine.TimeSlice(ptr.Deref(slices.Interval, ""))
	}
	return p
}

var strategies = map[v1alpha1.SharingStrategy]machine.Kind{
	v1alpha1.SharingNone: machine.KindGPU, v1alpha1.SharingMPS: machine.KindMPS, v1alpha1.SharingTimeSlicing: machine.KindTimeSlice,
}
