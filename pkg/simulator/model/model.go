// Package model is the table of GPU models that a simulated machine can have:
// what NVML says of each, and how each can be partitioned. It holds no state.
//
// Sources: NVIDIA's data sheets and MIG user guide, the output of nvidia-smi
// and `nvidia-smi mig -lgip` on such machines, and the PCI ID repository.
// Figures that no source gives are marked as estimates.
package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Model is what all GPUs of one model have in common.
type Model struct {
	// Name is how machine descriptions name it: "h100-sxm5-80gb".
	Name              string
	ProductName       string
	Brand             string
	Architecture      string
	ComputeCapability machine.Version
	// Memory is in bytes, as a current driver reports it.
	Memory machine.Memory
	// Multiprocessors of the whole GPU; Cores is NVML's count of CUDA cores.
	Multiprocessors int
	Cores           int
	// PCIDevice and PCISubsystem have the device in the upper and NVIDIA's
	// vendor number 10de in the lower half, as NVML has them.
	PCIDevice    uint32
	PCISubsystem uint32
	// ECC says whether the memory has ECC; it is then on, as delivered.
	ECC bool
	// NVLinks is the number of links, all of them up.
	NVLinks int
	// Fabric says that the GPU registers with an NVLink fabric manager.
	Fabric bool
	// MIG is nil where the model cannot be partitioned.
	MIG *MIG
}

// MIG is how a model can be partitioned.
type MIG struct {
	// OnDemand: the mode switches at once; otherwise at the next GPU reset.
	OnDemand bool
	// Slices and MemoryUnits are what the profiles share out.
	Slices      int
	MemoryUnits int
	// Engines are those of the hardware, which instances share out, too. The largest
	// profile need not have them all.
	Engines machine.Engines
	// Profiles are in the order of their numbers in nvml.h.
	Profiles []Profile
}

// Profile is a shape of GPU instance, with the number under which NVML's
// queries know it (NVML_GPU_INSTANCE_PROFILE_* in nvml.h).
type Profile struct {
	Number int
	machine.MIGProfile
}

// Profile returns the profile with that ID (MIGProfile.ID).
func (m *MIG) Profile(id int) (*Profile, bool) {
	if m == nil {
		return nil, false
	}
	i := slices.IndexFunc(m.Profiles, func(p Profile) bool { return p.ID == id })
	if i < 0 {
		return nil, false
	}
	return &m.Profiles[i], true
}

// Find returns the profile of that name, and where start is not nil its placement
// there.
func (m *MIG) Find(name string, start *int) (*Profile, *machine.Placement, error) {
	var names []string
	if m != nil {
		for i := range m.Profiles {
			if m.Profiles[i].Name == name {
				return m.Profiles[i].at(start)
			}
			names = append(names, m.Profiles[i].Name)
		}
	}
	return nil, nil, fmt.Errorf("MIG profile %q is unknown: use one of %s", name, cmp.Or(strings.Join(names, ", "), "none: it has no MIG"))
}

func (p *Profile) at(start *int) (*Profile, *machine.Placement, error) {
	if start == nil {
		return p, nil, nil
	}
	var starts []int
	for i := range p.Placements {
		if p.Placements[i].Start == *start {
			return p, &p.Placements[i], nil
		}
		starts = append(starts, p.Placements[i].Start)
	}
	return nil, nil, fmt.Errorf("%s cannot start at %d: use one of %v", p.Name, *start, starts)
}

// Engines of the whole GPU: those of its largest profile. A model without MIG
// has none, since NVML then does not say.
func (m *Model) Engines() machine.Engines {
	if m.MIG == nil {
		return machine.Engines{}
	}
	largest := slices.MaxFunc(m.MIG.Profiles, func(a, b Profile) int {
		if a.ComputeSlices != b.ComputeSlices {
			return a.ComputeSlices - b.ComputeSlices
		}
		return b.Number - a.Number
	})
	return largest.Engines
}

// Lookup returns the model of that name.
func Lookup(name string) (*Model, error) {
	for i := range table {
		if table[i].Name == name {
			return &table[i], nil
		}
	}
	return nil, fmt.Errorf("GPU model %q is unknown: use one of %s", name, strings.Join(Names(), ", "))
}

// Names are the models' names, in alphabetical order.
func Names() []string {
	names := make([]string, len(table))
	for i, m := range table {
		names[i] = m.Name
	}
	slices.Sort(names)
	return names
}
