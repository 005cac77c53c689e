package catalog

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// capacity is what a workload gets: memory in bytes without what the driver
// reserves, units, and a NIC's bandwidth in bits per second.
func capacity(m machine.Machine, d machine.Device) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	if d.Kind.SharesGPU() {
		return sharedCapacity(m, d)
	}
	if !d.Kind.HasGPU() {
		return map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"bandwidth": bandwidth(d)}
	}
	memory, multiprocessors, engines := d.GPU.Memory.Usable(), d.GPU.Multiprocessors, d.GPU.Engines
	if d.Partition != nil {
		profile := d.Partition.Profile
		memory, multiprocessors, engines = profile.Memory, profile.Multiprocessors, profile.Engines
	}
	capacity := map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"memory":          {Value: bytes(memory)},
		"multiprocessors": units(multiprocessors),
	}
	if d.Kind == machine.KindPair {
		capacity["bandwidth"] = bandwidth(d)
		return capacity
	}
	capacity["copyEngines"] = units(engines.Copy)
	capacity["decoders"] = units(engines.Decoders)
	capacity["encoders"] = units(engines.Encoders)
	capacity["jpegEngines"] = units(engines.JPEG)
	capacity["ofaEngines"] = units(engines.OFA)
	return capacity
}

// CapacityNames are the names of what devices of a kind have, in order; none for a
// kind that is not known.
func CapacityNames(k machine.Kind) []string {
	if !slices.Contains(machine.Kinds, k) {
		return nil
	}
	d := machine.Device{Kind: k, GPU: &machine.GPU{}, NIC: &machine.NIC{}, Lanes: 1}
	if k == machine.KindMIG {
		d.Partition = &machine.Partition{Profile: &machine.MIGProfile{}}
	}
	var names []string
	for name := range capacity(machine.Machine{}, d) {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

func bytes(n uint64) resource.Quantity { return *resource.NewQuantity(int64(n), resource.BinarySI) }

func amount(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

func units(n int) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: amount(n)}
}
