package catalog

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// AttributeClassConditions is the attribute by which PartitionClasses know devices that
// are right for them where no other attribute tells: package class says what is in it.
const AttributeClassConditions = "classConditions"

// TaintLeaving is the key of the taint on a device that no PartitionClass asks for any
// more, and that a claim may still have.
const TaintLeaving = DriverName + "/leaving"

// Offer chooses from a machine's devices.
type Offer interface {
	// Presence of the device in what is published.
	Presence(d machine.Device) Presence
	// Conditions is the device's value of AttributeClassConditions.
	Conditions(d machine.Device) string
}

// Presence of a device in what is published.
type Presence int

// Presences of devices.
const (
	// Present devices can be allocated.
	Present Presence = iota
	// Leaving devices are published with a taint. Claims that have them are counted,
	// and no other gets them.
	Leaving
	// Absent devices are not published.
	Absent
)

// everything is the offer where there are no classes.
type everything struct{}

func orEverything(o Offer) Offer {
	if o == nil {
		return everything{}
	}
	return o
}

func (everything) Presence(machine.Device) Presence { return Present }
func (everything) Conditions(machine.Device) string { return "" }

func leaving() resourceapi.DeviceTaint {
	return resourceapi.DeviceTaint{Key: TaintLeaving, Effect: resourceapi.DeviceTaintEffectNoSchedule}
}
