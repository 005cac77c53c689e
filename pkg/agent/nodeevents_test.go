package agent

import (
	"strings"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Whoever corrects one field of the administrator's file is not to hear of the next only then.
func TestTroublesOfOneDevice(t *testing.T) {
	absent := machine.Address{Bus: 0x1a}
	m := &machine.Machine{Network: machine.Network{
		Rails: map[machine.Address]int{absent: 0}, VFs: []machine.VFCount{{NIC: absent, Count: 4}},
	}}
	found := troubles(m)
	message := found[trouble{absent.String(), machine.FaultUndeclared}]
	if len(found) != 1 || !strings.Contains(message, "rails[0]") || !strings.Contains(message, "virtualFunctions[0].nic") {
		t.Errorf("%q", found)
	}
}
