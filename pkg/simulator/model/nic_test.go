package model

import (
	"strings"
	"testing"
)

func TestNICs(t *testing.T) {
	devices := map[[2]uint32]string{}
	for _, name := range NICNames() {
		n, err := LookupNIC(name)
		if err != nil {
			t.Fatal(err)
		}
		id := [2]uint32{n.PCIVendor, n.PCIDevice}
		if other, ok := devices[id]; ok {
			t.Errorf("%s and %s are the same PCI device %x", name, other, id)
		}
		devices[id] = name
		if n.Vendor == "" || n.Driver == "" || n.Ports < 1 || n.MaxMTU < 1500 || n.PCIDevice == n.VFDevice {
			t.Errorf("%s has odd values: %+v", name, n)
		}
		if r := n.RDMA; r != nil && (r.Prefix == "" || r.Firmware == "" || (r.Type == "") != (r.VFType == "")) {
			t.Errorf("%s has an odd RDMA device: %+v", name, r)
		}
	}
	if _, err := LookupNIC("ne2000"); err == nil || !strings.Contains(err.Error(), "connectx-7") {
		t.Errorf("an unknown model: %v", err)
	}
}
