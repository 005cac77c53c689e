package catalog

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// hold has the counters say what claims have, however the machine looks now. Devices that
// are not offered any more, as the pair of a GPU that is gone, are published as remnants:
// they keep what is left of them from others, and are nobody else's to get.
func (p *Pool) hold(m machine.Machine, options Options) {
	at := map[string]int{}
	for i := range p.Devices {
		at[p.Devices[i].Name] = i
	}
	for _, h := range options.Held {
		i, offered := at[h.Name]
		if !offered {
			d, left := m.Remnant(h)
			if !left {
				continue
			}
			i = len(p.Devices)
			at[h.Name] = i
			p.Devices = append(p.Devices, p.remnant(m, d, options))
			p.ForClaims = true
		}
		if h.Alone {
			p.takeAll(&p.Devices[i], (&machine.NIC{Address: h.Function}).Name())
		}
	}
}

func (p *Pool) remnant(m machine.Machine, d machine.Device, options Options) resourceapi.Device {
	device := build(m, d, options)
	device.ConsumesCounters = slices.DeleteFunc(device.ConsumesCounters, func(c resourceapi.DeviceCounterConsumption) bool {
		return p.counterSet(c.CounterSet) == nil
	})
	device.Taints = slices.DeleteFunc(device.Taints, func(t resourceapi.DeviceTaint) bool { return t.Key == TaintLeaving })
	device.Taints = append(device.Taints, leaving())
	return device
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
