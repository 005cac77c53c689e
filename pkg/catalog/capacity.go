package catalog

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// gpuCapacity is what a workload gets of a whole GPU: memory in bytes without
// what the driver reserves, and its units.
func gpuCapacity(gpu *machine.GPU) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	return map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"memory":          {Value: *resource.NewQuantity(int64(gpu.Memory.Usable()), resource.BinarySI)},
		"multiprocessors": units(gpu.Multiprocessors),
		"copyEngines":     units(gpu.Engines.Copy),
		"decoders":        units(gpu.Engines.Decoders),
		"encoders":        units(gpu.Engines.Encoders),
		"jpegEngines":     units(gpu.Engines.JPEG),
		"ofaEngines":      units(gpu.Engines.OFA),
	}
}

func units(n int) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: *resource.NewQuantity(int64(n), resource.DecimalSI)}
}
