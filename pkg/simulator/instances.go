package simulator

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Instance returns the GPU instance with that ID, as it lies in the state.
func (g GPU) Instance(id int) (*machine.GPUInstance, bool) {
	i := slices.IndexFunc(g.Instances, func(i machine.GPUInstance) bool { return i.ID == id })
	if i < 0 {
		return nil, false
	}
	return &g.Instances[i], true
}

// FreePlacements are those where an instance of that profile could be made now, by
// the driver's rules: no memory unit, no compute slice and no engine is given out
// twice, and media extensions only once.
func (g GPU) FreePlacements(profileID int) []machine.Placement {
	p, ok := g.Model.MIG.Profile(profileID)
	if !ok || p.ComputeSlices > g.slicesLeft() || !p.Engines.Within(g.enginesLeft()) || p.Media && g.mediaTaken() {
		return nil
	}
	var free []machine.Placement
	for _, at := range p.Placements {
		if g.overlapping(at) == nil {
			free = append(free, at)
		}
	}
	return free
}

// Remaining is how many more instances of that profile could be made, one after
// the other. Placements of one profile never overlap each other.
func (g GPU) Remaining(profileID int) int {
	p, ok := g.Model.MIG.Profile(profileID)
	if !ok {
		return 0
	}
	n := min(len(g.FreePlacements(profileID)), g.slicesLeft()/p.ComputeSlices)
	if p.Media {
		n = min(n, 1)
	}
	for n > 0 && !p.Engines.Times(n).Within(g.enginesLeft()) {
		n--
	}
	return n
}

func (g GPU) slicesLeft() int {
	left := g.Model.MIG.Slices
	for _, i := range g.Instances {
		left -= g.slicesOf(i.ProfileID)
	}
	return left
}

func (g GPU) enginesLeft() machine.Engines {
	left := g.Model.MIG.Engines
	for _, i := range g.Instances {
		p, _ := g.Model.MIG.Profile(i.ProfileID)
		left = left.Minus(p.Engines)
	}
	return left
}

// slicesOf a profile that exists: instances are made of no other.
func (g GPU) slicesOf(profileID int) int {
	p, _ := g.Model.MIG.Profile(profileID)
	return p.ComputeSlices
}

func (g GPU) mediaTaken() bool {
	return slices.ContainsFunc(g.Instances, func(i machine.GPUInstance) bool {
		p, _ := g.Model.MIG.Profile(i.ProfileID)
		return p.Media
	})
}

func (g GPU) overlapping(at machine.Placement) *machine.GPUInstance {
	for i := range g.Instances {
		if g.Instances[i].Placement.Overlaps(at) {
			return &g.Instances[i]
		}
	}
	return nil
}

// makeGPUInstance makes one at that placement; nil is the last that is free.
func (g GPU) makeGPUInstance(profileID int, at *machine.Placement) (machine.GPUInstance, error) {
	var none machine.GPUInstance
	p, ok := g.Model.MIG.Profile(profileID)
	switch {
	case !ok:
		return none, failure.New(failure.Invalid, "GPU %s: model %s has no MIG profile with ID %d", g.Spec.UUID, g.Model.Name, profileID)
	case at != nil && !slices.Contains(p.Placements, *at):
		return none, failure.New(failure.Invalid, "GPU %s: %s cannot lie at %d (size %d): use one of %v",
			g.Spec.UUID, p.Name, at.Start, at.Size, p.Placements)
	case !g.MIGEnabled:
		return none, failure.New(failure.Conflict, "GPU %s: MIG mode is off: switch it on first", g.Spec.UUID)
	}
	free := g.FreePlacements(profileID)
	if at == nil && len(free) > 0 {
		at = &free[len(free)-1]
	}
	if at == nil || !slices.Contains(free, *at) {
		return none, failure.New(failure.Conflict, "GPU %s: no room for %s%s: destroy an instance first", g.Spec.UUID, p.Name, g.why(at))
	}
	made := machine.GPUInstance{ID: g.freeID(*at), ProfileID: profileID, Placement: *at}
	g.Instances = append(g.Instances, made)
	slices.SortFunc(g.Instances, func(a, b machine.GPUInstance) int { return cmp.Compare(a.Placement.Start, b.Placement.Start) })
	return made, nil
}

// why there is no room at a placement.
func (g GPU) why(at *machine.Placement) string {
	if at == nil {
		return ""
	}
	if other := g.overlapping(*at); other != nil {
		return fmt.Sprintf(" at %d: instance %d lies there", at.Start, other.ID)
	}
	return fmt.Sprintf(" at %d: what else it needs is taken", at.Start)
}

// freeID is the lowest free one of those for instances of that size: 0 for the whole
// GPU, 1 and 2 for halves, from 3 on for quarters and from 7 on for eighths, as the
// real driver numbers them.
func (g GPU) freeID(at machine.Placement) int {
	id := g.Model.MIG.MemoryUnits/at.Size - 1
	for {
		if _, taken := g.Instance(id); !taken {
			return id
		}
		id++
	}
}

// makeComputeInstance makes one in a GPU instance.
func (g GPU) makeComputeInstance(in *machine.GPUInstance, computeSlices int) (machine.ComputeInstance, error) {
	var none machine.ComputeInstance
	whole := g.slicesOf(in.ProfileID)
	if computeSlices < 1 || computeSlices > whole {
		return none, failure.New(failure.Invalid, "GPU %s: a compute instance of %d slices in GPU instance %d: give 1 to %d",
			g.Spec.UUID, computeSlices, in.ID, whole)
	}
	left, id := whole, 0
	for _, c := range in.ComputeInstances { // in the order of their IDs
		left -= c.ComputeSlices
		if c.ID == id {
			id++
		}
	}
	if computeSlices > left {
		return none, failure.New(failure.Conflict, "GPU %s: GPU instance %d has %d compute slices left of %d, and not %d: destroy a compute instance first",
			g.Spec.UUID, in.ID, left, whole, computeSlices)
	}
	made := machine.ComputeInstance{ID: id, ComputeSlices: computeSlices, UUID: g.migUUID(in.ID, id)}
	in.ComputeInstances = slices.Insert(in.ComputeInstances, id, made)
	return made, nil
}

// migUUID names a MIG device. It comes again with the same IDs, whatever the profile,
// as with the real driver.
func (g GPU) migUUID(gpuInstance, computeInstance int) string {
	return "MIG-" + formatUUID(5, sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", g.Spec.UUID, gpuInstance, computeInstance)))
}

// cloneInstances gives the caller its own.
func (g GPU) cloneInstances() []machine.GPUInstance {
	clone := slices.Clone(g.Instances)
	for i := range clone {
		clone[i].ComputeInstances = slices.Clone(clone[i].ComputeInstances)
	}
	return clone
}
