package harness

import (
	"encoding/json"
	"path"
	"reflect"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// made is one step on record, and what came of it.
type made struct {
	plan.Step
	claim           journal.Claim
	GPUInstance     *int
	ComputeInstance *machine.ComputeInstance
	Devices         []string
}

// steps of all records that can be read.
func (c *comparison) steps() []made {
	var all []made
	for uid := range c.Claims() {
		entry, err := journal.Unmarshal(c.Files[path.Join(ClaimsDir, uid+jsonSuffix)])
		if err != nil {
			continue // reported elsewhere
		}
		for i, s := range entry.Steps {
			step := made{claim: entry.Claim}
			if err := json.Unmarshal(s.Intent, &step); err != nil {
				c.differ("the journal's record of claim %s: step %d: %v", entry.Claim, i, err)
				continue
			}
			if err := json.Unmarshal(s.Outcome, &step); s.Done() && err != nil {
				c.differ("the journal's record of claim %s: outcome %d: %v", entry.Claim, i, err)
			}
			all = append(all, step)
		}
	}
	return all
}

// partitions: those that exist are those on record, and those that the machine has
// from its boot on. MIG mode is on for claims alone, unless the machine boots so.
func (c *comparison) partitions(g simulator.GPU, steps []made) {
	rest := slices.Clone(g.Instances)
	enabled := g.Spec.MIG
	for _, s := range steps {
		switch {
		case s.GPU != g.Spec.UUID:
		case s.Kind == plan.EnableMIG:
			enabled = true
		case s.Kind == plan.MakeGPUInstance, s.Kind == plan.MakeComputeInstance:
			i := slices.IndexFunc(g.Instances, func(i machine.GPUInstance) bool { return s.Partition.Is(&i) })
			if i < 0 {
				c.differ("partition %s of claim %s does not exist", s.Partition.Device, s.claim)
				continue
			}
			c.asRecorded(&g.Instances[i], s)
			rest = slices.DeleteFunc(rest, func(i machine.GPUInstance) bool { return s.Partition.Is(&i) })
		}
	}
	for _, there := range g.Spec.Partitions {
		rest = slices.DeleteFunc(rest, func(i machine.GPUInstance) bool {
			p, _ := g.Model.MIG.Profile(i.ProfileID)
			return i.Placement.Start == there.Start && p.Name == there.Profile
		})
	}
	for _, instance := range rest {
		c.differ("GPU %s (%s) has a GPU instance that no claim has: %+v", g.Spec.Address, g.Spec.UUID, instance)
	}
	if g.MIGEnabled != enabled {
		c.differ("MIG mode of GPU %s (%s) is %t, want %t", g.Spec.Address, g.Spec.UUID, g.MIGEnabled, enabled)
	}
}

// asRecorded: the instance is the one that was made.
func (c *comparison) asRecorded(there *machine.GPUInstance, s made) {
	if s.GPUInstance == nil || *s.GPUInstance != there.ID {
		c.differ("partition %s of claim %s is GPU instance %d, not the one on record", s.Partition.Device, s.claim, there.ID)
	}
	if s.Kind == plan.MakeComputeInstance &&
		(s.ComputeInstance == nil || !reflect.DeepEqual(there.ComputeInstances, []machine.ComputeInstance{*s.ComputeInstance})) {
		c.differ("partition %s of claim %s has compute instances %+v, on record is %+v", s.Partition.Device, s.claim, there.ComputeInstances, s.ComputeInstance)
	}
}
