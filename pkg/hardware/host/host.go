// Package host puts a node's description together: GPUs and NICs, where they sit,
// and the boot they belong to.
package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/cgroup"
	"github.com/dovetail-dra/dovetail/pkg/hardware/pci"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Host describes the node.
type Host struct {
	gpus                hardware.GPUs
	sysfsRoot, procRoot string
	// CgroupRoot is where the kernel's cgroups are mounted: "/sys/fs/cgroup". Empty:
	// they are taken for version 1.
	CgroupRoot string
	// NICs is access to the node's network cards; nil: none are described.
	NICs hardware.NICs
}

// New takes where sysfs and proc are mounted: "/sys" and "/proc".
func New(gpus hardware.GPUs, sysfsRoot, procRoot string) *Host {
	return &Host{gpus: gpus, sysfsRoot: sysfsRoot, procRoot: procRoot}
}

// Describe reports the node as it is now. Its errors are those of
// hardware.GPUs.Describe, with which the NICs are described all the same, and that of
// a boot ID that cannot be read.
func (h *Host) Describe(ctx context.Context) (machine.Machine, error) {
	bootID, err := h.BootID()
	if err != nil {
		return machine.Machine{}, err
	}
	m := machine.Machine{BootID: bootID, CgroupV2: cgroup.Unified(h.CgroupRoot)}
	h.addNICs(ctx, &m)
	d, err := h.gpus.Describe(ctx)
	if err != nil {
		return m, err
	}
	for i := range d.GPUs {
		d.GPUs[i].Location = pci.Locate(h.sysfsRoot, d.GPUs[i].Address)
	}
	h.nameFaults(&d)
	m.Driver, m.GPUs, m.Faults = d.Driver, d.GPUs, append(d.Faults, m.Faults...)
	return m, nil
}

// addNICs describes the NICs, which never keep GPUs from being offered.
func (h *Host) addNICs(ctx context.Context, m *machine.Machine) {
	if h.NICs == nil {
		return
	}
	d, err := h.NICs.DescribeNICs(ctx)
	if err != nil {
		m.Faults = append(m.Faults, machine.Fault{Device: machine.AllNICs, Kind: machine.FaultUnreadable, Message: err.Error()})
		return
	}
	m.NICs, m.RDMANodes, m.RDMAExclusive, m.Faults = d.NICs, d.RDMANodes, d.RDMAExclusive, append(m.Faults, d.Faults...)
}

// nameFaults gives a GPU of which NVML only knows the index, since it was lost
// before it was ever read, the address that the kernel still has: people want to
// know which card to look at. Of several such GPUs none can be told from another.
func (h *Host) nameFaults(d *hardware.Description) {
	missing := pci.GPUs(h.sysfsRoot)
	known := func(a machine.Address) bool {
		return slices.ContainsFunc(d.GPUs, func(g machine.GPU) bool { return g.Address == a }) ||
			slices.ContainsFunc(d.Faults, func(f machine.Fault) bool { return f.Device == a.String() })
	}
	missing = slices.DeleteFunc(missing, known)
	var nameless []int
	for i, f := range d.Faults {
		if _, err := machine.ParseAddress(f.Device); err != nil {
			nameless = append(nameless, i)
		}
	}
	if len(missing) == 1 && len(nameless) == 1 {
		d.Faults[nameless[0]].Device = missing[0].String()
	}
}

// BootID changes at each boot (random(4)).
func (h *Host) BootID() (string, error) {
	data, err := os.ReadFile(filepath.Join(h.procRoot, "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("reading the boot ID: %w: mount the host's /proc at %s", err, h.procRoot)
	}
	return strings.TrimSpace(string(data)), nil
}
