// Package pci finds where a PCI device sits, from sysfs. It reads only what any
// user may read.
package pci

import (
	"os"
	"path/filepath"
	"regexp"
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
	path, err := filepath.EvalSymlinks(link)
	if err != nil {
		return location
	}
	root, ports := split(path)
	location.PCIeRoot = root
	// A root port, then an upstream and a downstream port for each switch.
	if n := len(ports); n >= 3 {
		location.Switch = ports[n-2]
	}
	return location
}

// split takes a device's path apart: its PCIe root, and the ports between root
// and device. Hyper-V puts roots deep below VMBUS, Arm below the platform.
func split(path string) (root string, ports []string) {
	parts := strings.Split(path, string(filepath.Separator))
	for _, part := range parts[:len(parts)-1] {
		switch {
		case root == "" && rootForm.MatchString(part):
			root = part
		case root != "":
			if _, err := machine.ParseAddress(part); err != nil {
				return root, nil
			}
			ports = append(ports, part)
		}
	}
	return root, ports
}

func numaNode(device string) int {
	data, err := os.ReadFile(filepath.Join(device, "numa_node"))
	if err != nil {
		return -1
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || node < 0 {
		return -1
	}
	return node
}
