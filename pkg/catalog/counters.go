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

// gpuCounters is what a GPU has in all.
func gpuCounters(gpu *machine.GPU) resourceapi.CounterSet {
	set := resourceapi.CounterSet{Name: gpu.Name(), Counters: counters{}}
	if len(gpu.MIG.Profiles) == 0 {
		set.Counters[counterWhole] = count(1)
		return set
	}
	has := gpu.MIG.Totals()
	set.Counters[counterComputeSlices] = count(has.ComputeSlices)
	for unit := range has.MemoryUnits {
		set.Counters[counterMemoryUnit+strconv.Itoa(unit)] = count(1)
	}
	addEngines(set.Counters, has.Engines)
	if has.Media {
		set.Counters[counterMedia] = count(1)
	}
	return set
}

func addEngines(set counters, engines machine.Engines) {
	for name, n := range map[string]int{
		counterCopyEngines: engines.Copy,
		counterDecoders:    engines.Decoders,
		counterEncoders:    engines.Encoders,
		counterJPEGEngines: engines.JPEG,
		counterOFAEngines:  engines.OFA,
	} {
		if n > 0 {
			set[name] = count(n)
		}
	}
}

// wholeGPU takes all that the GPU has.
func wholeGPU(gpu *machine.GPU) []resourceapi.DeviceCounterConsumption {
	set := gpuCounters(gpu)
	return []resourceapi.DeviceCounterConsumption{{CounterSet: set.Name, Counters: set.Counters}}
}
