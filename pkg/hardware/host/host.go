// Package host puts a node's description together: the GPUs, where they sit,
// and the boot they belong to.
package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/pci"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Host describes the node.
type Host struct {
	gpus                hardware.GPUs
	sysfsRoot, procRoot string
}

// New takes where sysfs and proc are mounted: "/sys" and "/proc".
func New(gpus hardware.GPUs, sysfsRoot, procRoot string) *Host {
	return &Host{gpus: gpus, sysfsRoot: sysfsRoot, procRoot: procRoot}
}

// Describe reports the node as it is now. Its errors are those of
// hardware.GPUs.Describe, and that of a boot ID that cannot be read.
func (h *Host) Describe(ctx context.Context) (machine.Machine, error) {
	bootID, err := h.BootID()
	if err != nil {
		return machine.Machine{}, err
	}
	d, err := h.gpus.Describe(ctx)
	if err != nil {
		return machine.Machine{}, err
	}
	for i := range d.GPUs {
		d.GPUs[i].Location = pci.Locate(h.sysfsRoot, d.GPUs[i].Address)
	}
	return machine.Machine{BootID: bootID, Driver: d.Driver, GPUs: d.GPUs, Faults: d.Faults}, nil
}

// BootID changes at each boot (random(4)).
func (h *Host) BootID() (string, error) {
	data, err := os.ReadFile(filepath.Join(h.procRoot, "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("reading the boot ID: %w: mount the host's /proc at %s", err, h.procRoot)
	}
	return strings.TrimSpace(string(data)), nil
}
