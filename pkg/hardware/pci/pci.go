// Package pci finds where a PCI device sits, from sysfs. It reads only what any
// user may read.
package pci

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

var rootForm = regexp.MustCompile(`^pci[0-9a-f]{4,8}:[0-9a-f]{2}$`)

// Locate returns the place of the device at address, with sysfs mounted at
// sysfsRoot. What sysfs does not say is left out: there is no error.
func Locate(sysfsRoot string, address machine.Address) machine.Location {
	link := filepath.Join(sysfsRoot, "bus/pci/devices", address.String())
	location := machine.Location{NUMANode: numaNode(link)}
	path, err := os.Readlink(link) // sysfs has the whole path in this one link
	if err != nil {
		return location
	}
	root, ports := split(path)
	location.PCIeRoot, location.Bridges = root, ports
	// A root port, then an upstream and a downstream port for each switch.
	if n := len(ports); n >= 3 {
		location.Switch = ports[n-2].String()
	}
	return location
}

// split takes a device's path apart: its PCIe root, and the ports between root
// and device. Hyper-V puts roots deep below VMBUS, Arm below the platform.
func split(path string) (root string, ports []machine.Address) {
	parts := strings.Split(path, string(filepath.Separator))
	for _, part := range parts[:len(parts)-1] {
		switch {
		case root == "" && rootForm.MatchString(part):
			root = part
		case root != "":
			port, err := machine.ParseAddress(part)
			if err != nil {
				return root, nil
			}
			ports = append(ports, port)
		}
	}
	return root, ports
}

func numaNode(device string) int {
	node, err := strconv.Atoi(read(device, "numa_node"))
	if err != nil || node < 0 {
		return -1
	}
	return node
}

// nvidia is NVIDIA's vendor number; displays are the classes of GPUs: VGA and 3D
// controllers (PCI Code and ID Assignment Specification).
const nvidia = "0x10de"

var displays = []string{"0x0300", "0x0302"}

// GPUs lists the addresses of NVIDIA's GPUs that the kernel sees, whatever their
// driver says.
func GPUs(sysfsRoot string) []machine.Address {
	devices := filepath.Join(sysfsRoot, "bus/pci/devices")
	entries, err := os.ReadDir(devices)
	if err != nil {
		return nil
	}
	var found []machine.Address
	for _, e := range entries {
		address, err := machine.ParseAddress(e.Name())
		if err != nil || read(devices, e.Name(), "vendor") != nvidia {
			continue
		}
		class := read(devices, e.Name(), "class")
		if slices.ContainsFunc(displays, func(d string) bool { return strings.HasPrefix(class, d) }) {
			found = append(found, address)
		}
	}
	return found
}

func read(path ...string) string {
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
