package catalog

import (
	"strconv"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// The counters of one NIC: its lanes, or where it has virtual functions, those.
const (
	counterLanes = "lanes"
	counterVF    = "vf-" // and its index
)

// nicCounters are sets of at most 32 counters, which is the API's limit: "nic-1a-00", and
// "nic-1a-00-vfs-32" and so on where there are more virtual functions. One that is
// withheld counts 0.
func nicCounters(nic *machine.NIC, lanes int) []resourceapi.CounterSet {
	if len(nic.VFs) == 0 {
		return []resourceapi.CounterSet{{Name: nic.Name(), Counters: counters{counterLanes: count(lanes)}}}
	}
	var sets []resourceapi.CounterSet
	for i := range nic.VFs {
		vf := &nic.VFs[i]
		name := vfSet(nic, vf)
		if len(sets) == 0 || sets[len(sets)-1].Name != name {
			sets = append(sets, resourceapi.CounterSet{Name: name, Counters: counters{}})
		}
		sets[len(sets)-1].Counters[vfCounter(vf)] = one(vf.Offered())
	}
	return sets
}

func vfCounter(vf *machine.VF) string { return counterVF + strconv.Itoa(vf.Index) }

// vfSet is the name of the set that counts the VF.
func vfSet(nic *machine.NIC, vf *machine.VF) string {
	const most = resourceapi.ResourceSliceMaxCountersPerCounterSet
	if first := vf.Index / most * most; first > 0 {
		return nic.Name() + "-vfs-" + strconv.Itoa(first)
	}
	return nic.Name()
}

// nicConsumption: a pair takes one lane, and what is not a part of the NIC all of them. So
// does what had a virtual function of a NIC that has none any more.
func nicConsumption(d machine.Device) resourceapi.DeviceCounterConsumption {
	if d.VF != nil && len(d.NIC.VFs) > 0 {
		return resourceapi.DeviceCounterConsumption{CounterSet: vfSet(d.NIC, d.VF), Counters: counters{vfCounter(d.VF): count(1)}}
	}
	lanes := d.Lanes
	if d.Kind == machine.KindPair && d.VF == nil {
		lanes = 1
	}
	return resourceapi.DeviceCounterConsumption{CounterSet: d.NIC.Name(), Counters: counters{counterLanes: count(lanes)}}
}
