package tree

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// Character devices' major numbers. 195 is assigned to NVIDIA (devices.txt of
// the kernel); the others are dynamic, and read from proc/devices.
const (
	majorNVIDIA = 195
	majorUVM    = 510
	majorCaps   = 511
)

// kernel renders proc.
func (w *writer) kernel(state *simulator.State) {
	w.file("proc/sys/kernel/random/boot_id", state.BootID+"\n", 0o444)
	devices := "Character devices:\n  1 mem\n  5 /dev/tty\n"
	if state.Driver == simulator.DriverLoaded {
		devices += fmt.Sprintf("%d nvidia\n%d nvidia-modeset\n%d nvidiactl\n%d nvidia-uvm\n%d nvidia-caps\n",
			majorNVIDIA, majorNVIDIA, majorNVIDIA, majorUVM, majorCaps)
	}
	w.file("proc/devices", devices+"\nBlock devices:\n259 blkext\n", 0o444)
	if state.Driver != simulator.DriverLoaded {
		w.remove("proc/driver/nvidia")
		w.remove("proc/driver/nvidia-caps")
		return
	}
	w.file("proc/driver/nvidia/version", fmt.Sprintf(
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build\nGCC version:  (simulated)\n",
		state.Spec.Driver.Version), 0o444)
	keep := map[string]bool{}
	for i := range state.GPUs {
		g := state.GPU(i)
		dir := "proc/driver/nvidia/gpus/" + g.Spec.Address.String()
		keep[dir] = true
		w.file(dir+"/information", fmt.Sprintf("Model: \t\t %s\nGPU UUID: \t %s\nBus Type: \t PCIe\nBus Location: \t %s\n"+
			"Device Minor: \t %d\nGPU Excluded:\t No\n", g.Model.ProductName, g.Spec.UUID, g.Spec.Address, g.Spec.Minor), 0o444)
	}
	w.removeMatching("proc/driver/nvidia/gpus/*", keep)
	w.capabilities(state)
}

// capabilities renders the numbers of all capabilities, and those that there are.
func (w *writer) capabilities(state *simulator.State) {
	var minors strings.Builder
	common := map[string]int{"config": simulator.CapabilityConfig, "monitor": simulator.CapabilityMonitor}
	for _, name := range slices.Sorted(maps.Keys(common)) {
		fmt.Fprintf(&minors, "%s %d\n", name, common[name])
	}
	for i := range state.GPUs {
		g := state.GPU(i)
		if g.Model.MIG == nil {
			continue
		}
		w.instances(g)
		for gi := range simulator.CapabilityGPUInstances {
			fmt.Fprintf(&minors, "gpu%d/gi%d/access %d\n", g.Spec.Minor, gi, g.Capability(gi))
			for ci := range simulator.CapabilityComputeInstances {
				fmt.Fprintf(&minors, "gpu%d/gi%d/ci%d/access %d\n", g.Spec.Minor, gi, ci, g.Capability(gi, ci))
			}
		}
	}
	w.file("proc/driver/nvidia-caps/mig-minors", minors.String(), 0o444)
	for name, minor := range common {
		w.capability("proc/driver/nvidia/capabilities/mig/"+name, minor)
	}
}

func (w *writer) capability(name string, minor int) {
	w.file(name, fmt.Sprintf("DeviceFileMinor: %d\nDeviceFileMode: 256\nDeviceFileModify: 1\n", minor), 0o444)
}
