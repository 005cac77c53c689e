package catalog

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// hold has the counters say what claims have, however the machine looks now. Devices that
// are not offered any more, as the pair of a GPU that is gone, are published as remnants:
// they keep what is left of them from others, and are nobody else's to get.
func (p *Pool) hold(m machine.Machine, offered map[string]machine.Device, options Options) {
	at := map[string]int{}
	for i := range p.Devices {
		at[p.Devices[i].Name] = i
	}
	for _, h := range options.Held {
		i, published := at[h.Name]
		if d := offered[h.Name]; !published || !h.Is(&d) {
			remnant, left := m.Remnant(h)
			if left && !published {
				i = len(p.Devices)
				p.Devices = append(p.Devices, resourceapi.Device{})
			}
			if left {
				p.Devices[i] = p.remnant(m, remnant, options)
				at[h.Name], offered[h.Name], p.ForClaims, published = i, remnant, true, true
				p.Remnants = append(p.Remnants, h.Name)
			}
		}
		if h.Alone && published {
			p.takeAll(&p.Devices[i], (&machine.NIC{Address: h.Function}).Name())
		}
	}
}

func (p *Pool) remnant(m machine.Machine, d machine.Device, options Options) resourceapi.Device {
	device := build(m, d, options)
	device.ConsumesCounters = p.counted(device.ConsumesCounters)
	device.Taints = slices.DeleteFunc(device.Taints, func(t resourceapi.DeviceTaint) bool { return t.Key == TaintLeaving })
	device.Taints = append(device.Taints, leaving())
	return device
}

// counted is the part of what a device takes of which there are counters: if a device took
// of any other, the scheduler would give nobody anything of the node.
func (p *Pool) counted(taken []resourceapi.DeviceCounterConsumption) []resourceapi.DeviceCounterConsumption {
	var counted []resourceapi.DeviceCounterConsumption
	for _, c := range taken {
		set := p.counterSet(c.CounterSet)
		if set == nil {
			continue
		}
		there := counters{}
		for name, n := range c.Counters {
			if _, some := set.Counters[name]; some {
				there[name] = n
			}
		}
		if len(there) > 0 {
			counted = append(counted, resourceapi.DeviceCounterConsumption{CounterSet: c.CounterSet, Counters: there})
		}
	}
	return counted
}

// takeAll has a device take all lanes of the NIC of which it has one.
func (p *Pool) takeAll(device *resourceapi.Device, nic string) {
	for i := range device.ConsumesCounters {
		taken := &device.ConsumesCounters[i]
		if taken.CounterSet != nic {
			continue
		}
		all := p.counterSet(nic).Counters[counterLanes]
		if lanes, some := taken.Counters[counterLanes]; some && lanes.Value.Cmp(all.Value) != 0 {
			taken.Counters[counterLanes] = all
			p.ForClaims = true
		}
	}
}

func (p *Pool) counterSet(name string) *resourceapi.CounterSet {
	i := slices.IndexFunc(p.Counters, func(s resourceapi.CounterSet) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Counters[i]
}
