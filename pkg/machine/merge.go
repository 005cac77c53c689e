package machine

import (
	"cmp"
	"reflect"
	"slices"
)

// Merge returns now, with those GPUs of before that now only reports as faults
// kept as they were and marked unhealthy, and NICs likewise. What was offered once
// stays offered, since a claim may hold it; a taint keeps new work away. Of a NIC that
// is in another network namespace, what was known of it is kept.
//
// A new boot starts afresh; so do GPUs with another driver.
func Merge(before, now Machine) Machine {
	if before.BootID != now.BootID {
		return now
	}
	merged := now
	merged.keepNICs(&before)
	if before.Driver == now.Driver {
		merged.GPUs = mergeGPUs(&before, &now)
	}
	return merged
}

func mergeGPUs(before, now *Machine) []GPU {
	merged := slices.Clone(now.GPUs)
	for _, gpu := range before.GPUs {
		if _, described := now.GPU(gpu.UUID); described || now.taken(gpu.Address) {
			continue
		}
		gpu.Health = Health{
			Reason:  FaultLost,
			Message: "GPU " + gpu.UUID + " at " + gpu.Address.String() + " is no longer reported by the driver: reset it or reboot the node",
		}
		for _, f := range now.Faults { // the last is the one that ended the look
			if f.Device == gpu.Address.String() {
				gpu.Health = Health{Reason: f.Kind, Message: f.Message}
			}
		}
		merged = append(merged, gpu)
	}
	slices.SortStableFunc(merged, func(a, b GPU) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.UUID, b.UUID))
	})
	return merged
}

// taken says whether a GPU is at that address: names come from addresses.
func (m *Machine) taken(a Address) bool {
	return slices.ContainsFunc(m.GPUs, func(g GPU) bool { return g.Address == a })
}

// WithoutDriver returns the machine as it is when its driver has gone: the GPUs that
// it had stay, with their faults, and none of them can be used, for the reason why; now
// is what can be seen without the driver.
func WithoutDriver(before, now Machine, why string) Machine {
	now.Faults = slices.Clip(now.Faults)
	for _, f := range before.Faults {
		if !before.ofNIC(f) && !now.ofNIC(f) {
			now.Faults = append(now.Faults, f) // a GPU's, which cannot be asked
		}
	}
	now.Driver, now.GPUs = before.Driver, slices.Clone(before.GPUs)
	for i := range now.GPUs {
		now.GPUs[i].Health = Health{Reason: FaultDriverAbsent, Message: why}
	}
	if before.BootID == now.BootID {
		now.keepNICs(&before)
	}
	return now
}

// ofNIC says whether a fault is one of the machine's NICs', or of all of them.
func (m *Machine) ofNIC(f Fault) bool {
	address, err := ParseAddress(f.Device)
	return f.Device == AllNICs || err == nil && m.NIC(address) != nil
}

// Equal says whether both describe the same.
func (m *Machine) Equal(other *Machine) bool { return reflect.DeepEqual(m, other) }
