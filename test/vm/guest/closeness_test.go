package guest

import (
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware/pci"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// TestCloseness: what sysfs says of a real tree comes to nvidia-smi's words.
func TestCloseness(t *testing.T) {
	type want struct {
		nic  topology.NIC
		is   machine.Closeness
		node int
	}
	for _, gpu := range []struct {
		topology.GPU
		node int
		nics []want
	}{
		{topology.GPU0, 0, []want{
			{topology.Near, machine.ClosenessPIX, 0},
			{topology.Below, machine.ClosenessPXB, 0},
			{topology.Beside, machine.ClosenessPHB, 0},
			{topology.Twin, machine.ClosenessPHB, 0},
			{topology.SameNode, machine.ClosenessNODE, 0},
			{topology.Far, machine.ClosenessSYS, 1},
			{topology.Uplink, machine.ClosenessSYS, -1},
		}},
		{topology.GPU1, 1, []want{
			{topology.Far, machine.ClosenessPIX, 1},
			{topology.Near, machine.ClosenessSYS, 0},
		}},
	} {
		at := locate(t, gpuAddress(t, gpu.GPU))
		if at.NUMANode != gpu.node {
			t.Errorf("%s is on NUMA node %d, want %d", gpu.Name, at.NUMANode, gpu.node)
		}
		for _, w := range gpu.nics {
			nic := locate(t, function(t, "net", w.nic.Name))
			if got := at.Closeness(&nic); got != w.is || nic.NUMANode != w.node {
				t.Errorf("%s and %s are %s, on node %d; want %s, %d:\n%+v\n%+v", gpu.Name, w.nic.Name, got, nic.NUMANode, w.is, w.node, at, nic)
			}
		}
	}
}

func locate(t *testing.T, address string) machine.Location {
	t.Helper()
	a, err := machine.ParseAddress(address)
	must(t, err)
	return pci.Locate("/sys", a)
}
