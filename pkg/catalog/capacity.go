package catalog

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// capacity is what a workload gets: memory in bytes without what the driver
// reserves, and units.
func capacity(d machine.Device) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	memory, multiprocessors, engines := d.GPU.Memory.Usable(), d.GPU.Multiprocessors, d.GPU.Engines
	if d.Partition != nil {
		profile := d.Partition.Profile
		memory, multiprocessors, engines = profile.Memory, profile.Multiprocessors, profile.Engines
	}
	return map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"memory":          {Value: *resource.NewQuantity(int64(memory), resource.BinarySI)},
		"multiprocessors": units(multiprocessors),
		"copyEngines":     units(engines.Copy),
		"decoders":        units(engines.Decoders),
		"encoders":        units(engines.Encoders),
		"jpegEngines":     units(engines.JPEG),
		"ofaEngines":      units(engines.OFA),
	}
}

func units(n int) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: *resource.NewQuantity(int64(n), resource.DecimalSI)}
}
