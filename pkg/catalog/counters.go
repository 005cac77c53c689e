package catalog

import (
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// The counters of one GPU. They do all the excluding: its whole, its partitions
// and its shares can only be out together where they fit together. Names are
// stable across releases, since quotas are written against them.
const (
	counterWhole         = "whole" // the only one of a GPU without MIG
	counterComputeSlices = "compute-slices"
	counterMemoryUnit    = "memory-unit-" // and its number, from 0
	counterCopyEngines   = "copy-engines"
	counterDecoders      = "decoders"
	counterEncoders      = "encoders"
	counterJPEGEngines   = "jpeg-engines"
	counterOFAEngines    = "ofa-engines"
	counterMedia         = "media" // at most one partition with media extensions
)

type counters = map[string]resourceapi.Counter

func count(n int) resourceapi.Counter {
	return resourceapi.Counter{Value: *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

// gpuCounters is what a GPU has to hand out: all that it has, but for what
// instances occupy that others have made.
func gpuCounters(gpu *machine.GPU) resourceapi.CounterSet {
	set := resourceapi.CounterSet{Name: gpu.Name(), Counters: counters{}}
	if len(gpu.MIG.Profiles) == 0 {
		set.Counters[counterWhole] = count(1)
		return set
	}
	all, left := gpu.MIG.Totals(), gpu.MIG.Left()
	set.Counters[counterComputeSlices] = count(left.ComputeSlices)
	for unit := range all.MemoryUnits {
		set.Counters[memoryUnit(unit)] = one(!gpu.MIG.Taken(unit))
	}
	addEngines(set.Counters, all.Engines, left.Engines)
	if all.Media {
		set.Counters[counterMedia] = one(left.Media)
	}
	return set
}

func memoryUnit(unit int) string { return counterMemoryUnit + strconv.Itoa(unit) }

// one is a counter of 1, or of 0.
func one(there bool) resourceapi.Counter {
	if there {
		return count(1)
	}
	return count(0)
}

// addEngines adds a counter for each kind that the GPU has.
func addEngines(set counters, all, engines machine.Engines) {
	for name, n := range map[string][2]int{
		counterCopyEngines: {all.Copy, engines.Copy},
		counterDecoders:    {all.Decoders, engines.Decoders},
		counterEncoders:    {all.Encoders, engines.Encoders},
		counterJPEGEngines: {all.JPEG, engines.JPEG},
		counterOFAEngines:  {all.OFA, engines.OFA},
	} {
		if n[0] > 0 {
			set[name] = count(n[1])
		}
	}
}

// consumption of a device, of its GPU and of its NIC.
func consumption(d machine.Device) []resourceapi.DeviceCounterConsumption {
	var taken []resourceapi.DeviceCounterConsumption
	if d.Kind.HasGPU() {
		taken = gpuConsumption(d)
	}
	if d.Kind.HasNIC() {
		taken = append(taken, nicConsumption(d))
	}
	return taken
}

// gpuConsumption: a whole GPU takes all that its GPU has, a partition its share, and one
// that is there already nothing, since the GPU's counters are without it.
func gpuConsumption(d machine.Device) []resourceapi.DeviceCounterConsumption {
	taken := resourceapi.DeviceCounterConsumption{CounterSet: d.GPU.Name()}
	switch p := d.Partition; {
	case p == nil:
		taken.Counters = gpuCounters(d.GPU).Counters
	case p.Static():
		return nil
	default:
		taken.Counters = partitionCounters(p)
	}
	return []resourceapi.DeviceCounterConsumption{taken}
}

func partitionCounters(p *machine.Partition) counters {
	taken := counters{counterComputeSlices: count(p.Profile.ComputeSlices)}
	for unit := p.Placement.Start; unit < p.Placement.Start+p.Placement.Size; unit++ {
		taken[memoryUnit(unit)] = count(1)
	}
	addEngines(taken, p.Profile.Engines, p.Profile.Engines)
	if p.Profile.Media {
		taken[counterMedia] = count(1)
	}
	return taken
}
