package claim

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// A claim keeps its VF where the device of that name has another one by now, and its
// record is of other hardware only where the NIC was exchanged, or the VF removed.
func TestSameNIC(t *testing.T) {
	physical := machine.Address{Bus: 2}
	vf := func(n uint8) machine.VF {
		return machine.VF{Index: int(n) - 1, Address: machine.Address{Bus: 2, Function: n}, RDMA: &machine.RDMADevice{Name: "mlx5_" + string('0'+n)}}
	}
	prepared := plan.Device{Name: "vf", Kind: machine.KindVF, NIC: &plan.NIC{Function: vf(2).Address, RDMA: "mlx5_2"}}
	away, exchanged := vf(2), vf(2)
	away.Away, away.RDMA = true, nil
	exchanged.RDMA = &machine.RDMADevice{Name: "other"}
	for name, test := range map[string]struct {
		vfs  []machine.VF
		same bool
	}{
		"as it was":     {[]machine.VF{vf(1), vf(2)}, true},
		"in a Pod":      {[]machine.VF{vf(1), away}, true},
		"exchanged":     {[]machine.VF{vf(1), exchanged}, false},
		"another there": {[]machine.VF{vf(1)}, false},
	} {
		m := &machine.Machine{NICs: []machine.NIC{{Address: physical, VFs: test.vfs}}}
		now := machine.Device{Name: "vf", Kind: machine.KindVF, NIC: &m.NICs[0], VF: &m.NICs[0].VFs[0]}
		if got := same(prepared, now, m); got != test.same {
			t.Errorf("%s: the same: %t", name, got)
		}
	}
}
