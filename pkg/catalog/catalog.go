// Package catalog turns a machine into what is published: the pool's devices,
// their counters, and the order of both. It is pure: the same machine gives the
// same bytes.
package catalog

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// DriverName is the name of the DRA driver and the domain of its attributes.
const DriverName = "dovetail.dev"

// TaintUnhealthy is the key of the taint on a device whose hardware reports a
// fault. Its value is the fault's kind.
const TaintUnhealthy = DriverName + "/unhealthy"

// TaintMonitor is the key of the taint on devices for admin access alone.
const TaintMonitor = DriverName + "/monitor"

// Limits of the API for one slice (k8s.io/api/resource/v1): devices where any of
// them has counters or taints, and counter sets.
const (
	maxDevicesPerSlice  = resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures
	maxCountersPerSlice = resourceapi.ResourceSliceMaxCounterSets
)

// Options are the administrator's choices.
type Options struct {
	// UnhealthyEffect of the taint on sick devices. Default: NoSchedule.
	UnhealthyEffect resourceapi.DeviceTaintEffect
	// Offer chooses what is published. Default: everything is.
	Offer Offer
	// Held are the devices that claims have, which stay theirs alone.
	Held []machine.Held
}

// Pool is everything that one node offers, in the order of preference.
type Pool struct {
	Counters []resourceapi.CounterSet
	Devices  []resourceapi.Device
	// ForClaims says that something would be published otherwise if no claim had it.
	ForClaims bool
	// Remnants name the devices that are not offered otherwise.
	Remnants []string
}

// Build describes the machine's devices.
func Build(m machine.Machine, options Options) Pool {
	if options.UnhealthyEffect == "" {
		options.UnhealthyEffect = resourceapi.DeviceTaintEffectNoSchedule
	}
	options.Offer = orEverything(options.Offer)
	var pool Pool
	pool.ForClaims = m.WithholdInstances(options.Held)
	offered := map[string]machine.Device{}
	for i := range m.GPUs {
		pool.Counters = append(pool.Counters, gpuCounters(&m.GPUs[i]))
	}
	for i := range m.NICs {
		if nic := &m.NICs[i]; nic.Offered() {
			pool.Counters = append(pool.Counters, nicCounters(nic, m.Lanes(nic))...)
		}
	}
	for _, d := range m.Devices() {
		if options.Offer.Presence(d) != Absent {
			pool.Devices = append(pool.Devices, build(m, d, options))
			offered[d.Name] = d
		}
	}
	pool.hold(m, offered, options)
	return pool
}

func build(m machine.Machine, d machine.Device, options Options) resourceapi.Device {
	device := resourceapi.Device{
		Name:       d.Name,
		Attributes: Attributes(m, d, options.Offer),
		Capacity:   capacity(m, d),
	}
	if d.Kind == machine.KindMonitor {
		// It takes nothing from anybody, and looks at sick GPUs too. The taint keeps
		// requests away that would be refused.
		device.Taints = []resourceapi.DeviceTaint{{Key: TaintMonitor, Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		return device
	}
	if d.Kind.Shared() {
		// The counters are taken once, by the first share, and given back by the last.
		device.AllowMultipleAllocations = ptr.To(true)
	}
	device.ConsumesCounters = consumption(d)
	if health := d.Health(); !health.OK() {
		device.Taints = []resourceapi.DeviceTaint{{
			Key:    TaintUnhealthy,
			Value:  string(health.Reason),
			Effect: options.UnhealthyEffect,
		}}
	}
	if options.Offer.Presence(d) == Leaving {
		device.Taints = append(device.Taints, leaving())
	}
	return device
}

// Slice is the content of one ResourceSlice: counters or devices, never both.
type Slice struct {
	Counters []resourceapi.CounterSet `json:"counters,omitempty"`
	Devices  []resourceapi.Device     `json:"devices,omitempty"`
}

// Slices splits the pool within the API's limits. There is at least one slice,
// so that an empty pool differs from a driver that does not run.
func (p Pool) Slices() []Slice {
	var slices []Slice
	for start := 0; start < len(p.Counters); start += maxCountersPerSlice {
		end := min(start+maxCountersPerSlice, len(p.Counters))
		slices = append(slices, Slice{Counters: p.Counters[start:end]})
	}
	for start := 0; start < len(p.Devices); start += maxDevicesPerSlice {
		end := min(start+maxDevicesPerSlice, len(p.Devices))
		slices = append(slices, Slice{Devices: p.Devices[start:end]})
	}
	if len(slices) == 0 {
		slices = append(slices, Slice{})
	}
	return slices
}
