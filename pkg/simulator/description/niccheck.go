package description

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// maxVFs is as many as the standard counts (PCI Express, SR-IOV: TotalVFs); the
// addresses of more than 255 would leave the bus.
const maxVFs = 254

// unused says whether a NIC without its driver is described as what it then is.
func (n *NIC) unused(m *model.NIC) error {
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"netdevs", n.Netdevs != nil && len(*n.Netdevs) > 0}, {"rdma", n.RDMA != "" && n.RDMA != none},
		{"dcb", n.DCB != nil}, {"numVFs", n.NumVFs != 0}, {"uplink", n.Uplink}, {"bond", n.Bond != ""},
	} {
		if field.given {
			return fmt.Errorf("%s: needs the driver %s, and driver is %q: leave one of both out", field.name, m.Driver, n.Driver)
		}
	}
	return nil
}

func (n *NIC) check(spec *simulator.NICSpec, m *model.NIC) error {
	last := int(spec.Address.Device)<<3 | int(spec.Address.Function)
	switch {
	case spec.Speed < 0:
		return fmt.Errorf("speed: %d is negative: give it in Gb/s, or 0 for unknown", spec.Speed)
	case n.MaxVFs < 0 || n.MaxVFs > maxVFs-last:
		return fmt.Errorf("maxVFs: %d is out of range: give 0 to %d", n.MaxVFs, maxVFs-last)
	case n.MaxVFs > 0 && m.VFDevice == 0:
		return fmt.Errorf("maxVFs: %d, but model %s has none: leave it out", n.MaxVFs, m.Name)
	case n.NumVFs < 0 || n.NumVFs > n.MaxVFs:
		return fmt.Errorf("numVFs: %d is out of range: give 0 to %d, which maxVFs says", n.NumVFs, n.MaxVFs)
	case n.Bond != "" && !interfaceForm.MatchString(n.Bond):
		return fmt.Errorf("bond: %q is no interface name: use up to %d letters, digits, ., - and _", n.Bond, simulator.MaxInterfaceName)
	case (n.Uplink || n.Bond != "") && len(spec.Netdevs) == 0:
		return fmt.Errorf("uplink or bond: needs a network interface, and there is none: leave it out")
	}
	return nil
}

// of is what the port has after boot. A port whose driver speaks DCB says at least
// that nothing is lossless.
func (d *DCB) of(spec *simulator.NICSpec, m *model.NIC, own bool) (machine.DCB, error) {
	if !m.DCB || len(spec.Netdevs) == 0 || spec.LinkLayer == machine.LinkInfiniBand {
		if own {
			return machine.DCB{}, fmt.Errorf("needs an Ethernet interface of a model that speaks DCB, and this is a %s: leave it out", m.Name)
		}
		return machine.DCB{}, nil
	}
	dcb := machine.DCB{Trust: machine.TrustPCP, ETS: &machine.ETS{Class: [8]uint8{1, 0, 2, 3, 4, 5, 6, 7}}}
	if d == nil || m.RDMA == nil && !own {
		return dcb, nil
	}
	for _, p := range d.PFC {
		if p < 0 || p > 7 {
			return dcb, fmt.Errorf("pfc: priority %d is out of range: give 0 to 7", p)
		}
		dcb.PFC[p] = true
	}
	dcb.Trust = cmp.Or(d.Trust, machine.TrustPCP)
	if dcb.Trust != machine.TrustPCP && dcb.Trust != machine.TrustDSCP {
		return dcb, fmt.Errorf("trust: %q is unknown: use pcp or dscp", d.Trust)
	}
	if len(d.DSCP) > 0 && dcb.Trust != machine.TrustDSCP {
		return dcb, fmt.Errorf("dscp: needs trust: dscp, and trust is %q", dcb.Trust)
	}
	for _, point := range slices.Sorted(maps.Keys(d.DSCP)) {
		if point > 63 || d.DSCP[point] > 7 {
			return dcb, fmt.Errorf("dscp: %d: %d is out of range: give code points 0 to 63, and priorities 0 to 7", point, d.DSCP[point])
		}
		dcb.DSCP = append(dcb.DSCP, machine.DSCPPriority{DSCP: point, Priority: d.DSCP[point]})
	}
	return dcb, nil
}
