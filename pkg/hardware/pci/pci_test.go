package pci_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/hardware/pci"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

func TestLocate(t *testing.T) {
	unknown := machine.Location{NUMANode: -1}
	for name, c := range map[string]struct {
		path string // below sys/devices, or nothing
		numa string
		want machine.Location
	}{
		"not there":         {"", "", unknown},
		"on the root":       {"pci0000:00/0000:1b:00.0", "-1\n", machine.Location{PCIeRoot: "pci0000:00", NUMANode: -1}},
		"root port":         {"pci0000:1a/0000:1a:01.0/0000:1b:00.0", "0\n", machine.Location{PCIeRoot: "pci0000:1a", Bridges: bridges("0000:1a:01.0")}},
		"bridge below port": {"pci0000:1a/0000:1a:01.0/0000:1a:02.0/0000:1b:00.0", "", machine.Location{PCIeRoot: "pci0000:1a", Bridges: bridges("0000:1a:01.0", "0000:1a:02.0"), NUMANode: -1}},
		"switch": {"pci0000:17/0000:17:01.0/0000:18:00.0/0000:19:00.0/0000:1b:00.0", "1\n",
			machine.Location{PCIeRoot: "pci0000:17", Switch: "0000:18:00.0", Bridges: bridges("0000:17:01.0", "0000:18:00.0", "0000:19:00.0"), NUMANode: 1}},
		"two switches": {"pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0/0000:14:00.0/0000:1b:00.0", "1\n",
			machine.Location{PCIeRoot: "pci0000:10", Switch: "0000:13:00.0",
				Bridges: bridges("0000:10:01.0", "0000:11:00.0", "0000:12:00.0", "0000:13:00.0", "0000:14:00.0"), NUMANode: 1}},
		"Hyper-V": {"LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-0001-0000-3130-444531444234/pci0001:00/0000:1b:00.0", "0\n",
			machine.Location{PCIeRoot: "pci0001:00"}},
		"no PCI root":    {"platform/0000:1b:00.0", "nonsense\n", unknown},
		"strange parent": {"pci0000:17/virtual/0000:1b:00.0", "", machine.Location{PCIeRoot: "pci0000:17", NUMANode: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			sys := t.TempDir()
			if c.path != "" {
				device := filepath.Join(sys, "devices", c.path)
				link := filepath.Join(sys, "bus/pci/devices", filepath.Base(c.path))
				must(t, os.MkdirAll(device, 0o755))
				must(t, os.MkdirAll(filepath.Dir(link), 0o755))
				must(t, os.Symlink(filepath.Join("../../../devices", c.path), link))
				if c.numa != "" {
					must(t, os.WriteFile(filepath.Join(device, "numa_node"), []byte(c.numa), 0o644))
				}
			}
			if got := pci.Locate(sys, machine.Address{Bus: 0x1b}); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestLocateSimulated(t *testing.T) {
	m := simulatortest.New(t, "dgx-a100")
	got := pci.Locate(filepath.Join(m.Root(), "sys"), machine.Address{Bus: 0x0f})
	want := machine.Location{PCIeRoot: "pci0000:00", Switch: "0000:01:00.0", Bridges: bridges("0000:00:01.1", "0000:01:00.0", "0000:02:0c.0"), NUMANode: 3}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func bridges(addresses ...string) []machine.Address {
	var found []machine.Address
	for _, a := range addresses {
		address, err := machine.ParseAddress(a)
		if err != nil {
			panic(err)
		}
		found = append(found, address)
	}
	return found
}
