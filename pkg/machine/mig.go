package machine

import "fmt"

// MIG is what NVML says of a GPU's partitions. A GPU without MIG has the zero
// value.
type MIG struct {
	Capable bool `json:"capable"`
	Enabled bool `json:"enabled"`
	// Pending is the mode after the next GPU reset.
	Pending bool `json:"pending"`
	// OnDemand says that the mode switches at once, without a reset of the GPU:
	// Hopper and later.
	OnDemand bool         `json:"onDemand"`
	Profiles []MIGProfile `json:"profiles,omitempty"`
	// Instances are the GPU instances that exist, in the order of their
	// placements.
	Instances []GPUInstance `json:"instances,omitempty"`
}

// HowToSwitch is how people switch the mode of the GPU at an address; 1 is on.
func (m *MIG) HowToSwitch(address string, mode int) string {
	how := fmt.Sprintf("nvidia-smi -i %s -mig %d", address, mode)
	if !m.OnDemand {
		how += fmt.Sprintf(" and then nvidia-smi -i %s --gpu-reset", address)
	}
	return how
}

// MIGProfile is a shape of GPU instance.
type MIGProfile struct {
	// ID is what NVML wants when an instance is made; it moves between drivers.
	ID int `json:"id"`
	// Name is as in nvidia-smi: "1g.10gb", "1g.10gb+me".
	Name            string  `json:"name"`
	ComputeSlices   int     `json:"computeSlices"`
	Memory          uint64  `json:"memory"` // bytes, usable
	Multiprocessors int     `json:"multiprocessors"`
	Engines         Engines `json:"engines"`
	// Media profiles (+me and kin) exist at most once on a GPU.
	Media        bool        `json:"media"`
	MaxInstances int         `json:"maxInstances"`
	Placements   []Placement `json:"placements"`
}

// Placement is where an instance can lie, in memory units.
type Placement struct {
	Start int `json:"start"`
	Size  int `json:"size"`
}

// Overlaps says whether both want the same memory unit.
func (p Placement) Overlaps(other Placement) bool {
	return p.Start < other.Start+other.Size && other.Start < p.Start+p.Size
}

// GPUInstance is a partition's share of memory and engines, as it exists.
type GPUInstance struct {
	// ID is the driver's, unique on the GPU while the instance exists, and given
	// again to a later one.
	ID int `json:"id"`
	// ProfileID is MIGProfile.ID.
	ProfileID int       `json:"profileID"`
	Placement Placement `json:"placement"`
	// ComputeInstances in the order of their IDs. Without any, the instance is of
	// no use to a workload.
	ComputeInstances []ComputeInstance `json:"computeInstances,omitempty"`
	// Withheld: a record was lost, and the instance may be a claim's.
	Withheld bool `json:"withheld,omitempty"`
}

// ComputeInstance is a share of a GPU instance's compute slices: what CUDA calls a
// MIG device.
type ComputeInstance struct {
	// ID is unique within the GPU instance.
	ID            int `json:"id"`
	ComputeSlices int `json:"computeSlices"`
	// UUID of the MIG device: "MIG-…".
	UUID string `json:"uuid"`
}

// Profile returns the profile with that ID.
func (m *MIG) Profile(id int) (*MIGProfile, bool) {
	for i := range m.Profiles {
		if m.Profiles[i].ID == id {
			return &m.Profiles[i], true
		}
	}
	return nil, false
}
