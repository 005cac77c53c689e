package catalog

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// sharedCapacity is what a GPU has to share. What a request does not ask for is the
// policy's default: of memory, an equal part for each of the most claims that there
// can be.
func sharedCapacity(m machine.Machine, d machine.Device) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	clients, memory := m.Clients(d.Kind), d.GPU.Memory.Usable()
	capacity := map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
	if size := d.Size; size != nil {
		each, _ := size.Each(memory)
		capacity["memory"] = fixed(bytes(memory), bytes(each))
		capacity["clients"] = fixed(amount(m.ClientsOf(size)), amount(1))
		if d.Kind == machine.KindMPS {
			capacity["compute"] = fixed(amount(100), amount(size.Compute))
		}
		return capacity
	}
	capacity["memory"] = divided(bytes(memory), mebibytes(memory/uint64(clients)), bytes(machine.MinShare), bytes(machine.MinShare))
	capacity["clients"] = divided(amount(clients), amount(1), amount(1), amount(1))
	if d.Kind == machine.KindMPS {
		capacity["compute"] = divided(amount(100), amount(0), amount(0), amount(1))
	}
	return capacity
}

// divided is capacity of which a claim takes at least least, and more in steps. The
// API has rules for such a policy: the least and one step must be there, and the most
// must be so many steps. Where there is less, all of it is one claim's; of nothing, as
// on a GPU that does not say how much memory it has, everybody takes all.
func divided(value, standard, least, step resource.Quantity) resourceapi.DeviceCapacity {
	steps := (value.Value() - least.Value()) / step.Value()
	if steps < 1 {
		return resourceapi.DeviceCapacity{Value: value}
	}
	if standard.Cmp(least) < 0 {
		standard = least
	}
	most := resource.NewQuantity(least.Value()+steps*step.Value(), value.Format)
	return resourceapi.DeviceCapacity{Value: value, RequestPolicy: &resourceapi.CapacityRequestPolicy{
		Default:    &standard,
		ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &least, Max: most, Step: &step},
	}}
}

// fixed is capacity of which every claim takes the same.
func fixed(value, each resource.Quantity) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: value, RequestPolicy: &resourceapi.CapacityRequestPolicy{
		Default: &each, ValidValues: []resource.Quantity{each},
	}}
}

// mebibytes is bytes, rounded down to whole MiB.
func mebibytes(n uint64) resource.Quantity { return bytes(n &^ (machine.MinShare - 1)) }
