package guest

import (
	"path/filepath"
	"testing"

	"github.com/dovetail-dra/dovetail/test/vm/internal/topology"
)

// slotOf finds the slot that a NIC is in.
func slotOf(t *testing.T, n topology.NIC) string {
	t.Helper()
	address := function(t, "net", n.Name)
	slots, err := filepath.Glob("/sys/bus/pci/slots/*/address")
	must(t, err)
	for _, slot := range slots {
		if read(t, slot)+".0" == address {
			return filepath.Dir(slot)
		}
	}
	t.Fatalf("%s (%s) is in no slot", n.Name, address)
	return ""
}

// TestPowerOff: a NIC whose slot is turned off takes its interface and its RDMA device
// along. The emulator then throws it away.
func TestPowerOff(t *testing.T) {
	if _, err := byMAC(topology.Spare.MAC); err != nil {
		t.Skip("the NIC for this test has been taken out before: it can be run once in a machine")
	}
	must(t, within(patience, func() error { return goHome(topology.Spare) }))
	device := deviceOf(t, topology.Spare)
	write(t, "0", slotOf(t, topology.Spare), "power")
	gone(t, topology.Spare, device)
}

// TestRemove: the same for one that is taken away by its file in sysfs, and comes back.
func TestRemove(t *testing.T) {
	nic := lend(t)
	device := deviceOf(t, nic)
	remove(t, nic)
	gone(t, nic, device)
}

func deviceOf(t *testing.T, n topology.NIC) string {
	t.Helper()
	return filepath.Join("/sys/bus/pci/devices", function(t, "net", n.Name))
}

// remove takes a NIC from the kernel, until the test ends.
func remove(t *testing.T, n topology.NIC) {
	t.Helper()
	t.Cleanup(func() { write(t, "1", "/sys/bus/pci/rescan") })
	write(t, "1", deviceOf(t, n), "remove")
}

func gone(t *testing.T, n topology.NIC, device string) {
	t.Helper()
	for _, path := range []string{device, "/sys/class/net/" + n.Name, "/sys/class/infiniband/" + n.RDMA} {
		if err := absent(path); err != nil {
			t.Error(err)
		}
	}
}
