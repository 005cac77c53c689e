package compact

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/class"
)

type (
	attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	capacity   = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity
	counters   = map[string]resourceapi.Counter
)

var yes = true

// Slices makes ResourceSlices compact. The zero value is ready.
type Slices struct {
	names      shared[string]
	attributes shared[attributes]
	capacity   shared[capacity]
	consumes   shared[[]resourceapi.DeviceCounterConsumption]
	sets       shared[resourceapi.CounterSet]
}

// Transform is for informers: it returns a ResourceSlice that must not be changed, and
// anything else as it is.
func (s *Slices) Transform(object any) (any, error) {
	slice, ok := object.(*resourceapi.ResourceSlice)
	if !ok {
		return object, nil
	}
	small := &resourceapi.ResourceSlice{
		ObjectMeta: identity(&slice.ObjectMeta),
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   slice.Spec.Driver,
			Pool:     slice.Spec.Pool,
			NodeName: slice.Spec.NodeName,
		},
	}
	if n := len(slice.Spec.Devices); n > 0 {
		small.Spec.Devices = make([]resourceapi.Device, n)
		for i := range slice.Spec.Devices {
			s.device(&small.Spec.Devices[i], &slice.Spec.Devices[i])
		}
	}
	for _, set := range slice.Spec.SharedCounters {
		small.Spec.SharedCounters = append(small.Spec.SharedCounters, s.sets.of(set.Name+" "+keyOfCounters(set.Counters), func() resourceapi.CounterSet { return set }))
	}
	return small, nil
}

func (s *Slices) device(small, d *resourceapi.Device) {
	small.Name = s.names.of(d.Name, func() string { return strings.Clone(d.Name) })
	small.Attributes = s.attributes.of(string(appendAttributes(nil, d.Attributes)), func() attributes { return keptAttributes(d.Attributes) })
	isShared := ptr.Deref(d.AllowMultipleAllocations, false)
	small.Capacity = s.capacity.of(keyOfCapacity(d.Capacity, isShared), func() capacity { return keptCapacity(d.Capacity, isShared) })
	if isShared {
		small.AllowMultipleAllocations = &yes
	}
	if len(d.ConsumesCounters) > 0 {
		small.ConsumesCounters = s.consumes.of(keyOfConsumption(d.ConsumesCounters), func() []resourceapi.DeviceCounterConsumption { return d.ConsumesCounters })
	}
	for _, taint := range d.Taints {
		small.Taints = append(small.Taints, resourceapi.DeviceTaint{Key: taint.Key, Effect: taint.Effect})
	}
}

// AppendLook appends a key for all of a device that selectors of classes read.
func AppendLook(key []byte, d *resourceapi.Device) []byte {
	key = appendAttributes(key, d.Attributes)
	if memory, ok := d.Capacity[class.CapacityName]; ok {
		key = strconv.AppendInt(key, memory.Value.Value(), 10)
	}
	return key
}

func appendAttributes(key []byte, all attributes) []byte {
	for _, name := range class.AttributeNames {
		switch value := all[resourceapi.QualifiedName(name)]; {
		case value.StringValue != nil:
			key = strconv.AppendQuote(key, *value.StringValue)
		case value.IntValue != nil:
			key = strconv.AppendInt(key, *value.IntValue, 10)
		case value.BoolValue != nil:
			key = strconv.AppendBool(key, *value.BoolValue)
		case value.VersionValue != nil:
			key = strconv.AppendQuote(append(key, 'v'), *value.VersionValue)
		}
		key = append(key, ',')
	}
	return key
}

func keptAttributes(all attributes) attributes {
	kept := attributes{}
	for _, name := range class.AttributeNames {
		if value, ok := all[resourceapi.QualifiedName(name)]; ok {
			kept[resourceapi.QualifiedName(name)] = value
		}
	}
	return kept
}

// keptCapacity is the memory; of what is shared all that a share takes by default.
func keptCapacity(all capacity, isShared bool) capacity {
	kept := capacity{}
	for name, c := range all {
		switch {
		case isShared:
			kept[name] = resourceapi.DeviceCapacity{Value: c.Value, RequestPolicy: keptPolicy(c.RequestPolicy)}
		case name == class.CapacityName:
			kept[name] = resourceapi.DeviceCapacity{Value: c.Value}
		}
	}
	return kept
}

func keptPolicy(p *resourceapi.CapacityRequestPolicy) *resourceapi.CapacityRequestPolicy {
	if p == nil {
		return nil
	}
	return &resourceapi.CapacityRequestPolicy{Default: p.Default}
}

func keyOfCapacity(all capacity, isShared bool) string {
	if !isShared {
		memory := all[class.CapacityName]
		return memory.Value.String()
	}
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		fmt.Fprintf(&key, "%s %s", name, c.Value.String())
		if c.RequestPolicy != nil && c.RequestPolicy.Default != nil {
			byDefault := *c.RequestPolicy.Default // String writes into a quantity
			fmt.Fprintf(&key, " by default %s", byDefault.String())
		}
		key.WriteByte(',')
	}
	return key.String()
}

func keyOfConsumption(consumes []resourceapi.DeviceCounterConsumption) string {
	var key strings.Builder
	for _, c := range consumes {
		fmt.Fprintf(&key, "%s %s;", c.CounterSet, keyOfCounters(c.Counters))
	}
	return key.String()
}

func keyOfCounters(all counters) string {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name].Value
		fmt.Fprintf(&key, "%s=%s,", name, value.String())
	}
	return key.String()
}
