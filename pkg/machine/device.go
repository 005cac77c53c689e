package machine

import (
	"slices"
	"strings"
)

// Kind of a device, published as its attribute "type".
type Kind string

// Kinds of device.
const (
	KindGPU       Kind = "gpu"       // a whole GPU
	KindMPS       Kind = "mps"       // shares of a GPU, by MPS
	KindTimeSlice Kind = "timeslice" // shares of a GPU, one after the other
	KindMIG       Kind = "mig"       // a partition of a GPU
	KindNIC       Kind = "nic"       // a NIC, with its network interface
	KindRDMA      Kind = "rdma"      // a NIC's RDMA device; the interface stays with the host
	KindVF        Kind = "vf"        // a virtual function of a NIC
	KindPair      Kind = "pair"      // a whole GPU, and a NIC next to it or a part of one
	KindMonitor   Kind = "monitor"   // a look at a GPU, whoever has it; for admin access alone
)

// Kinds are all of them, in the order in which they are published.
var Kinds = []Kind{KindNIC, KindRDMA, KindPair, KindGPU, KindMPS, KindTimeSlice, KindVF, KindMIG, KindMonitor}

// Shared says whether several claims can have a device of this kind at a time.
func (k Kind) Shared() bool { return k.SharesGPU() || k == KindRDMA }

// SharesGPU says whether a device of this kind is a GPU that claims have shares of.
func (k Kind) SharesGPU() bool { return k == KindMPS || k == KindTimeSlice }

// HasGPU says whether a device of this kind is a GPU, or has a part of one.
func (k Kind) HasGPU() bool { return k != KindNIC && k != KindRDMA && k != KindVF }

// HasNIC likewise; pairs have both.
func (k Kind) HasNIC() bool { return !k.HasGPU() || k == KindPair }

// Device is something that can be handed out: hardware in one of its shapes.
type Device struct {
	// Name is a DNS label made from the PCI address, never from an index.
	Name string
	Kind Kind
	// GPU is the hardware behind it; nil for KindNIC, KindRDMA and KindVF.
	GPU *GPU
	// NIC likewise; nil but for KindNIC, KindRDMA, KindVF and KindPair.
	NIC *NIC
	// VF of the NIC; nil but for KindVF, and for KindPair where the NIC has any.
	VF *VF
	// Lanes is into how many parts the NIC is shared out, 1 at least; 0 without NIC.
	Lanes int
	// Closeness of GPU and NIC; empty but for KindPair.
	Closeness Closeness
	// Partition of the GPU; nil but for KindMIG.
	Partition *Partition
	// Size that each share has; nil where a claim says how much it wants.
	Size *Size
}

// Health of the device: of a pair the GPU's or the NIC's, whichever is worse.
func (d *Device) Health() Health {
	var all []Health
	if d.GPU != nil {
		all = append(all, d.GPU.Health)
	}
	if d.NIC != nil {
		all = append(all, d.NIC.Health)
	}
	for _, bad := range []func(Health) bool{
		func(h Health) bool { return !h.Usable() },
		func(h Health) bool { return !h.OK() },
	} {
		if i := slices.IndexFunc(all, bad); i >= 0 {
			return all[i]
		}
	}
	return Health{}
}

// Static says whether it is a partition that somebody else has made.
func (d *Device) Static() bool { return d.Partition != nil && d.Partition.Static() }

// Devices lists what the machine offers, in the order in which it is to be
// published: the allocator takes the first that fits.
//
// A GPU in MIG mode is not offered whole, nor in pairs. Few before many, since a
// request is compared with all that come before its match; monitors come last: hardly
// anybody asks for them.
func (m *Machine) Devices() []Device {
	pairings := m.pairings()
	devices := m.nics(KindNIC, pairings)
	devices = append(devices, m.nics(KindRDMA, pairings)...)
	devices = append(devices, m.pairs(pairings)...)
	for i := range m.GPUs {
		if gpu := &m.GPUs[i]; !gpu.MIG.Enabled {
			devices = append(devices, gpu.whole())
		}
	}
	for i := range m.GPUs {
		devices = append(devices, m.shares(&m.GPUs[i])...)
	}
	devices = append(devices, m.vfs(pairings)...)
	devices = append(devices, m.partitions()...)
	for i := range m.GPUs {
		devices = append(devices, m.GPUs[i].monitor())
	}
	return devices
}

// Device returns the device of that name. Names are compared, never parsed; only
// what cannot be it is left out sooner. A share of a size that is not offered is a
// device all the same: see earlierSize.
func (m *Machine) Device(name string) (Device, bool) {
	if d, ok := m.networkDevice(name); ok {
		return d, true
	}
	for i := range m.GPUs {
		gpu := &m.GPUs[i]
		if !strings.Contains(name, gpu.Address.Label()) {
			continue
		}
		if !gpu.MIG.Enabled && name == gpu.Name() {
			return gpu.whole(), true
		}
		for _, some := range []func() []Device{ // few before many
			func() []Device { return []Device{gpu.monitor()} },
			func() []Device { return m.shares(gpu) },
			gpu.partitions,
		} {
			for _, d := range some() {
				if d.Name == name {
					return d, true
				}
			}
		}
		if d, ok := m.earlierSize(gpu, name); ok {
			return d, true
		}
	}
	return Device{}, false
}

func (g *GPU) whole() Device { return Device{Name: g.Name(), Kind: KindGPU, GPU: g} }

func (g *GPU) monitor() Device {
	return Device{Name: string(KindMonitor) + "-" + g.Address.Label(), Kind: KindMonitor, GPU: g}
}

// partitions are the GPU's partitions as devices, in no order.
func (g *GPU) partitions() []Device {
	labels := profileLabels(g.MIG.Profiles)
	var devices []Device
	for _, p := range g.Partitions() {
		devices = append(devices, Device{Name: g.partitionName(labels[p.Profile], p.Placement), Kind: KindMIG, GPU: g, Partition: &p})
	}
	return devices
}

// Name is the GPU's name as a whole device and as a counter set: "gpu-1b-00".
func (g *GPU) Name() string { return string(KindGPU) + "-" + g.Address.Label() }
