// Package packing says how well first fit packs partitions onto GPUs, by the order
// in which they are published. It knows the driver's rules, which are those of the
// published counters, and nothing of Kubernetes, so that it can try everything.
package packing

import (
	"cmp"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// Models are the GPU models that can be partitioned.
func Models() ([]*model.Model, error) {
	var models []*model.Model
	for _, name := range model.Names() {
		m, err := model.Lookup(name)
		if err != nil {
			return nil, err
		}
		if m.MIG != nil {
			models = append(models, m)
		}
	}
	return models, nil
}

// Machine has some GPUs of a model, in MIG mode.
func Machine(m *model.Model, gpus int) *machine.Machine {
	var profiles []machine.MIGProfile
	for _, p := range m.MIG.Profiles {
		profiles = append(profiles, p.MIGProfile)
	}
	made := &machine.Machine{}
	for i := range gpus {
		address := machine.Address{Bus: uint8(i + 1)}
		made.GPUs = append(made.GPUs, machine.GPU{
			UUID: "GPU-" + address.Label(), Address: address, Index: i, ProductName: m.ProductName,
			MIG: machine.MIG{Capable: true, Enabled: true, OnDemand: m.MIG.OnDemand, Profiles: profiles},
		})
	}
	return made
}

// GPU is what is out of one, by the driver's rules: memory units do not overlap,
// compute slices and the hardware's engines are enough, and one partition at most has
// media extensions.
type GPU struct {
	units   uint32
	slices  int
	engines machine.Engines
	media   bool
}

// Room says whether the GPU has room for one more partition.
func (g GPU) Room(p *machine.Partition, of *model.MIG) bool {
	return g.units&units(p) == 0 && g.slices+p.Profile.ComputeSlices <= of.Slices &&
		g.engines.Plus(p.Profile.Engines).Within(of.Engines) && !(g.media && p.Profile.Media)
}

// With one more partition.
func (g GPU) With(p *machine.Partition) GPU {
	return GPU{g.units | units(p), g.slices + p.Profile.ComputeSlices, g.engines.Plus(p.Profile.Engines), g.media || p.Profile.Media}
}

// Without one that it has.
func (g GPU) Without(p *machine.Partition) GPU {
	return GPU{g.units &^ units(p), g.slices - p.Profile.ComputeSlices, g.engines.Minus(p.Profile.Engines), g.media && !p.Profile.Media}
}

func units(p *machine.Partition) uint32 {
	return (uint32(1)<<p.Placement.Size - 1) << p.Placement.Start
}

// Order is a way to publish a machine's partitions.
type Order struct {
	Name string
	sort func([]machine.Device)
}

// Ours is Dovetail's.
var Ours = Order{"ours", func([]machine.Device) {}}

// FromStart goes GPU by GPU from the lowest start up, and of one start by profiles
// as NVML numbers them.
var FromStart = Order{"from the start", by(func(d machine.Device) int { return d.Partition.Placement.Start }, number)}

// FromEnd is its opposite.
var FromEnd = Order{"from the end", by(func(d machine.Device) int { return -d.Partition.Placement.Start }, number)}

// ByProfile goes GPU by GPU, profile by profile as NVML numbers them, each from the
// lowest start up. NVIDIA's driver publishes so.
var ByProfile = Order{"profile by profile", by(number, func(d machine.Device) int { return d.Partition.Placement.Start })}

// number is the profile's place in NVML's order.
func number(d machine.Device) int {
	return slices.IndexFunc(d.GPU.MIG.Profiles, func(p machine.MIGProfile) bool { return p.ID == d.Partition.Profile.ID })
}

func by(first, second func(machine.Device) int) func([]machine.Device) {
	return func(devices []machine.Device) {
		slices.SortStableFunc(devices, func(a, b machine.Device) int {
			return cmp.Or(a.GPU.Address.Compare(b.GPU.Address), cmp.Compare(first(a), first(b)), cmp.Compare(second(a), second(b)))
		})
	}
}

// Of lists the machine's partitions in that order.
func (o Order) Of(m *machine.Machine) []machine.Device {
	devices := slices.DeleteFunc(m.Devices(), func(d machine.Device) bool { return d.Kind != machine.KindMIG })
	o.sort(devices)
	return devices
}
