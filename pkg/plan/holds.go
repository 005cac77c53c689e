package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// What NICs are joined as by claims that have a part of one.
const (
	asLanes = "lanes" // pairs that share it
	asVFs   = "vfs"   // each with a virtual function of its own
)

// claim adds what nobody else may have beside the device. A claim itself cannot have it
// twice either.
func (p *Plan) claim(d machine.Device) error {
	holds, joins := parts(d)
	for _, name := range holds {
		if _, joined := p.Joins[name]; joined || slices.Contains(p.Holds, name) {
			return failure.New(failure.Conflict, "%s is allocated twice in one claim", name)
		}
	}
	for name, as := range joins {
		if was, joined := p.Joins[name]; joined && was != as || slices.Contains(p.Holds, name) {
			return failure.New(failure.Conflict, "%s is allocated twice in one claim, and in different ways", name)
		}
	}
	p.Holds = append(p.Holds, holds...)
	if len(joins) > 0 && p.Joins == nil {
		p.Joins = map[string]string{}
	}
	maps.Copy(p.Joins, joins)
	return nil
}

// parts names what a device is of hardware, so that whatever overlaps it clashes with
// it: a whole GPU, its shares, its pairs, and any partition that lies on the same memory
// unit; a NIC, its RDMA device, and its VFs.
func parts(d machine.Device) (holds []string, joins map[string]string) {
	joins = map[string]string{}
	switch {
	case d.GPU == nil:
	case d.Kind.SharesGPU(): // whoever has the GPU as the same device may have it, too
		for _, name := range append([]string{d.GPU.Name()}, memoryUnits(d)...) {
			joins[name] = d.Name
		}
	case d.Partition != nil:
		holds = append([]string{d.Name}, memoryUnits(d)...)
	default:
		holds = append([]string{d.GPU.Name()}, memoryUnits(d)...)
	}
	switch {
	case d.NIC == nil:
	case d.VF != nil:
		holds = append(holds, d.NIC.VFName(d.VF))
		joins[d.NIC.Name()] = asVFs
	case d.Kind == machine.KindRDMA:
		joins[d.NIC.Name()] = d.Name
	case d.Moves():
		holds = append(holds, d.NIC.Name())
	default:
		joins[d.NIC.Name()] = asLanes
	}
	return holds, joins
}

func memoryUnits(d machine.Device) []string {
	units := machine.Placement{Size: d.GPU.MIG.Totals().MemoryUnits}
	if d.Partition != nil {
		units = d.Partition.Placement
	}
	var names []string
	for unit := units.Start; unit < units.Start+units.Size; unit++ {
		names = append(names, MemoryUnit(d.GPU, unit))
	}
	return names
}

// MemoryUnit names a memory unit of a GPU as plans hold it.
func MemoryUnit(gpu *machine.GPU, unit int) string {
	return gpu.Name() + "/memory-unit-" + strconv.Itoa(unit)
}

// Clash describes what the plan takes and cannot have beside another one, which has these
// holds and joins; empty where both can be.
func (p *Plan) Clash(holds []string, joins map[string]string) string {
	held := map[string]string{} // as what device; empty: alone
	for _, name := range holds {
		held[name] = ""
	}
	maps.Copy(held, joins)
	for _, name := range p.Holds {
		if as, taken := held[name]; taken {
			return describeHold(name, as)
		}
	}
	for name, device := range p.Joins {
		if as, taken := held[name]; taken && as != device {
			return describeHold(name, as)
		}
	}
	return ""
}

func describeHold(name, as string) string {
	if as == "" {
		return "device " + name
	}
	return fmt.Sprintf("device %s, shared as %s,", name, as)
}

// Held are those of a plan's devices that nobody else can have, given what it holds.
func Held(devices []Device, holds []string) []machine.Held {
	var held []machine.Held
	for _, d := range devices {
		if d.AdminAccess {
			continue
		}
		h := machine.Held{Name: d.Name, Kind: d.Kind, GPU: d.GPU}
		if d.Placement != nil {
			h.Placement = *d.Placement
		}
		if d.NIC != nil {
			h.Function, h.NIC, h.Alone = d.NIC.Function, cmp.Or(d.NIC.Physical, d.NIC.Function), slices.Contains(holds, d.NIC.Name)
		}
		held = append(held, h)
	}
	return held
}
