package sched

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// taken is what claims have: devices of their own, and shares, of which the
// capacity adds up, as the scheduler keeps it (its plugin dynamicresources).
type taken struct{ structured.AllocatedState }

func newTaken() taken {
	return taken{structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}}
}

func (t *taken) add(r resourceapi.DeviceRequestAllocationResult) {
	id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
	if r.ShareID == nil {
		t.AllocatedDevices.Insert(id)
		return
	}
	t.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
	t.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
}

func (t *taken) remove(r resourceapi.DeviceRequestAllocationResult) {
	id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
	if r.ShareID == nil {
		t.AllocatedDevices.Delete(id)
		return
	}
	t.AllocatedSharedDeviceIDs.Delete(structured.MakeSharedDeviceID(id, r.ShareID))
	t.AggregatedCapacity.Remove(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
}

// devices of which anything is taken.
func (t *taken) devices() sets.Set[structured.DeviceID] {
	devices := t.AllocatedDevices.Clone()
	for share := range t.AllocatedSharedDeviceIDs {
		devices.Insert(share.GetDeviceID())
	}
	return devices
}
