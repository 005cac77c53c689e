package parameters

import (
	"net/netip"

	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// KindFor is the kind of configuration that a kind of device takes.
func KindFor(k machine.Kind) string {
	switch k {
	case machine.KindNIC, machine.KindRDMA, machine.KindVF:
		return v1alpha1.NICConfigKind
	case machine.KindPair:
		return v1alpha1.PairConfigKind
	default:
		return v1alpha1.GPUConfigKind
	}
}

// Plan is a configuration without what Kubernetes adds to it.
func Plan(c v1alpha1.Config) plan.Config {
	var p plan.Config
	switch c := c.(type) {
	case *v1alpha1.GPUConfig:
		p = ofGPU(&c.GPUSettings)
	case *v1alpha1.NICConfig:
		p.NIC = ofNIC(&c.NICSettings)
	case *v1alpha1.PairConfig:
		p = ofGPU(&c.GPU)
		p.NIC = ofNIC(&c.NIC)
	}
	return p
}

func ofGPU(c *v1alpha1.GPUSettings) plan.Config {
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

func ofNIC(c *v1alpha1.NICSettings) plan.NICConfig {
	p := plan.NICConfig{
		InterfaceName: ptr.Deref(c.InterfaceName, ""),
		MTU:           int(ptr.Deref(c.MTU, 0)),
		KeepHost:      ptr.Deref(c.KeepHostNetwork, false),
		Lossless:      ptr.Deref(c.RequireLossless, false),
		Topology:      c.NCCLTopology,
	}
	for _, a := range c.Addresses {
		p.Addresses = append(p.Addresses, canonical(a))
	}
	for _, r := range c.Routes {
		p.Routes = append(p.Routes, machine.Route{To: canonical(r.To), Via: canonical(r.Via), From: canonical(r.From), Metric: int(ptr.Deref(r.Metric, 0))})
	}
	switch {
	case c.TrafficClass != nil:
		p.TrafficClass = ptr.To(int(*c.TrafficClass))
	case c.DSCP != nil:
		p.TrafficClass = ptr.To(int(*c.DSCP) << 2) // above the two bits of ECN (RFC 3168)
	}
	return p
}

// canonical is an address, with or without a prefix, as the kernel writes it (RFC 5952): the
// API server takes no other into a claim's status, and what is there already is known by it.
func canonical(text string) string {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return prefix.String()
	}
	if address, err := netip.ParseAddr(text); err == nil {
		return address.String()
	}
	return text
}

var strategies = map[v1alpha1.SharingStrategy]machine.Kind{
	v1alpha1.SharingNone: machine.KindGPU, v1alpha1.SharingMPS: machine.KindMPS, v1alpha1.SharingTimeSlicing: machine.KindTimeSlice,
}
