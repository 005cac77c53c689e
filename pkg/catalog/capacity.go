package catalog

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// capacity is what a workload gets: memory in bytes without what the driver
// reserves, and units.
func capacity(m machine.Machine, d machine.Device) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	if d.Kind.Shared() {
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

// sharedCapacity is what a GPU has to share. What a request does not ask for is the
// policy's default: of memory, an equal part for each of the most claims that there
// can be.
func sharedCapacity(m machine.Machine, d machine.Device) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	clients := m.Clients(d.Kind)
	capacity := map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"memory":  shared(bytes(d.GPU.Memory.Usable()), mebibytes(d.GPU.Memory.Usable()/uint64(clients)), mebibytes(mib), mebibytes(d.GPU.Memory.Usable()), mebibytes(mib)),
		"clients": shared(amount(clients), amount(1), amount(1), amount(clients), amount(1)),
	}
	if d.Kind == machine.KindMPS {
		capacity["compute"] = shared(amount(100), amount(0), amount(0), amount(100), amount(1))
	}
	if d.Size != nil {
		capacity["memory"] = fixed(bytes(d.GPU.Memory.Usable()), bytes(d.Size.Memory))
		capacity["clients"] = fixed(amount(clients), amount(1))
		if d.Kind == machine.KindMPS {
			capacity["compute"] = fixed(amount(100), amount(d.Size.Compute))
		}
	}
	return capacity
}

const mib = 1 << 20

// shared is capacity of which a claim takes at least least, at most most, in steps.
// Where there is less than the least, as on a GPU that does not say how much memory
// it has, all of it is everybody's.
func shared(value, standard, least, most, step resource.Quantity) resourceapi.DeviceCapacity {
	if most.Cmp(least) < 0 {
		return resourceapi.DeviceCapacity{Value: value}
	}
	if standard.Cmp(least) < 0 {
		standard = least
	}
	return resourceapi.DeviceCapacity{Value: value, RequestPolicy: &resourceapi.CapacityRequestPolicy{
		Default:    &standard,
		ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &least, Max: &most, Step: &step},
	}}
}

// fixed is capacity of which every claim takes the same.
func fixed(value, each resource.Quantity) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: value, RequestPolicy: &resourceapi.CapacityRequestPolicy{
		Default: &each, ValidValues: []resource.Quantity{each},
	}}
}

func bytes(n uint64) resource.Quantity { return *resource.NewQuantity(int64(n), resource.BinarySI) }

// mebibytes is bytes, rounded down to whole MiB.
func mebibytes(n uint64) resource.Quantity { return bytes(n / mib * mib) }

func amount(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

func units(n int) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: amount(n)}
}
