package plan

import (
	"reflect"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// What is held is told by what it is of the hardware; who only looks holds nothing.
func TestHeld(t *testing.T) {
	function, physical := machine.Address{Bus: 2, Function: 1}, machine.Address{Bus: 2}
	devices := []Device{
		{Name: "monitor", Kind: machine.KindMonitor, GPU: "a", AdminAccess: true},
		{Name: "mig", Kind: machine.KindMIG, GPU: "a", Placement: &machine.Placement{Start: 3, Size: 1}},
		{Name: "pair", Kind: machine.KindPair, GPU: "b", NIC: &NIC{Name: "vf-02-00-0", Function: function, Physical: physical}},
		{Name: "rdma", Kind: machine.KindRDMA, NIC: &NIC{Name: "nic-02-00", Function: physical}},
		{Name: "of an earlier version", GPU: "b"},
	}
	want := []machine.Held{
		{Name: "mig", Kind: machine.KindMIG, GPU: "a", Placement: machine.Placement{Start: 3, Size: 1}},
		{Name: "pair", Kind: machine.KindPair, GPU: "b", Function: function, NIC: physical, Alone: true},
		{Name: "rdma", Kind: machine.KindRDMA, Function: physical, NIC: physical},
		{Name: "of an earlier version", GPU: "b"},
	}
	if got := Held(devices, []string{"mig", "gpu-01-00/memory-unit-3", "gpu-b", "vf-02-00-0"}); !reflect.DeepEqual(got, want) {
		t.Errorf("held: %+v\nwant %+v", got, want)
	}
}
