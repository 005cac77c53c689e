package catalog

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// capacity is what a workload gets: memory in bytes without what the driver
// reserves, and units.
func capacity(m machine.Machine, d machine.Device) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	if d.Kind.SharesGPU() {
		return sharedCapacity(m, d)
	}
	memory, multiprocessors, engines := d.GPU.Memory.Usable(), d.GPU.Multiprocessors, d.GPU.Engines
	if d.Partition != nil {
		profile := d.Partition.Profile
		memory, multiprocessors, engines = profile.Memory, profile.Multiprocessors, profile.Engines
	}
	return map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"memory":          {Value: bytes(memory)},
		"multiprocessors": units(multiprocessors),
		"copyEngines":     units(engines.Copy),
		"decoders":        units(engines.Decoders),
		"encoders":        units(engines.Encoders),
		"jpegEngines":     units(engines.JPEG),
		"ofaEngines":      units(engines.OFA),
	}
}

func bytes(n uint64) resource.Quantity { return *resource.NewQuantity(int64(n), resource.BinarySI) }

func amount(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

func units(n int) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: amount(n)}
}
