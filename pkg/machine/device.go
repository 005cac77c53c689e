package machine

// Kind of a device, published as its attribute "type".
type Kind string

// Kinds of device.
const (
	KindGPU     Kind = "gpu"     // a whole GPU
	KindMIG     Kind = "mig"     // a partition of a GPU
	KindMonitor Kind = "monitor" // a look at a GPU, whoever has it; for admin access alone
)

// Kinds are all of them.
var Kinds = []Kind{KindGPU, KindMIG, KindMonitor}

// Device is something that can be handed out: hardware in one of its shapes.
type Device struct {
	// Name is a DNS label made from the PCI address, never from an index.
	Name string
	Kind Kind
	// GPU is the hardware behind it.
	GPU *GPU
	// Partition of the GPU; nil but for KindMIG.
	Partition *Partition
}

// Static says whether it is a partition that somebody else has made.
func (d *Device) Static() bool { return d.Partition != nil && d.Partition.Static() }

// Devices lists what the machine offers, in the order in which it is to be
// published: the allocator takes the first that fits.
//
// A GPU in MIG mode is not offered whole. Few before many, since a request is
// compared with all that come before its match; monitors come last: hardly anybody
// asks for them.
func (m *Machine) Devices() []Device {
	var devices []Device
	for i := range m.GPUs {
		if gpu := &m.GPUs[i]; !gpu.MIG.Enabled {
			devices = append(devices, Device{Name: gpu.Name(), Kind: KindGPU, GPU: gpu})
		}
	}
	devices = append(devices, m.partitions()...)
	for i := range m.GPUs {
		gpu := &m.GPUs[i]
		devices = append(devices, Device{Name: string(KindMonitor) + "-" + gpu.Address.Label(), Kind: KindMonitor, GPU: gpu})
	}
	return devices
}

// Device returns the device of that name. Names are compared, never parsed.
func (m *Machine) Device(name string) (Device, bool) {
	for _, d := range m.Devices() {
		if d.Name == name {
			return d, true
		}
	}
	return Device{}, false
}

// Name is the GPU's name as a whole device and as a counter set: "gpu-1b-00".
func (g *GPU) Name() string { return string(KindGPU) + "-" + g.Address.Label() }
