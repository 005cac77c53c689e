package claim

import (
	"cmp"
	"context"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// owned is what the journal says was made for claims, or may have been: an intent
// is on record before the hardware is touched, and stays until it is undone.
type owned struct {
	enabled    map[string]bool              // MIG mode, by GPU
	partitions map[string][]*plan.Partition // by GPU
	reserved   []machine.Reserved           // NICs and VFs
	held       []machine.Held               // devices
	// holds are those of records whose steps cannot be read.
	holds []string
	// lost says that a record was lost, so that what nobody owns may be a claim's.
	lost bool
}

// owned reads the journal.
func (m *Manager) owned(ctx context.Context) (owned, error) {
	all := owned{enabled: map[string]bool{}, partitions: map[string][]*plan.Partition{}}
	lost, err := m.Journal.Lost()
	if err != nil {
		return all, err
	}
	all.lost = lost
	err = m.eachRecord(ctx, func(e *journal.Entry, steps []plan.Step, err error) {
		all.held = append(all.held, m.decoded.entry(e).held...)
		if err != nil {
			all.holds = append(all.holds, e.Holds...)
			all.lost = all.lost || len(e.Holds) == 0
			return
		}
		for _, s := range steps {
			if s.Kind == plan.EnableMIG && !s.MIGBefore {
				all.enabled[s.GPU] = true
			}
			if s.Kind == plan.MakeGPUInstance {
				all.partitions[s.GPU] = append(all.partitions[s.GPU], s.Partition)
			}
			if s.Kind == plan.ReserveNIC {
				all.reserved = append(all.reserved, *s.Reserved)
			}
		}
	})
	return all, err
}

// eachRecord goes through the records of this boot, with their steps. Of a damaged
// record the copy in the claim's CDI specification counts; of one whose steps this
// version does not know, what it holds is known all the same; of one that is lost
// nothing is.
func (m *Manager) eachRecord(ctx context.Context, visit func(e *journal.Entry, steps []plan.Step, err error)) error {
	records, err := m.records(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		entry, unknown := r.Entry, r.Err
		if entry == nil {
			entry, unknown = m.copyOf(r.UID)
		}
		if entry == nil {
			visit(&journal.Entry{Claim: journal.Claim{UID: r.UID}}, nil, unknown)
			continue
		}
		if entry.BootID != m.BootID {
			continue
		}
		is := m.decoded.entry(entry)
		visit(entry, is.steps, cmp.Or(is.err, unknown))
	}
	m.decoded.trim(len(records))
	return nil
}

// made says whether a step on record makes an instance of the GPU with that UUID.
func (all *owned) made(gpu string, i *machine.GPUInstance) bool {
	return slices.ContainsFunc(all.partitions[gpu], func(p *plan.Partition) bool { return p.Is(i) })
}

// has says whether an instance was made for a claim, or may have been.
func (all *owned) has(gpu *machine.GPU, i *machine.GPUInstance) bool {
	if all.made(gpu.UUID, i) {
		return true
	}
	for unit := i.Placement.Start; unit < i.Placement.Start+i.Placement.Size; unit++ {
		if !slices.Contains(all.holds, plan.MemoryUnit(gpu, unit)) {
			return false
		}
	}
	return true
}

// enables says whether MIG mode of a GPU is on for claims.
func (all *owned) enables(gpu *machine.GPU) bool {
	return all.enabled[gpu.UUID] || slices.ContainsFunc(gpu.MIG.Instances, func(i machine.GPUInstance) bool {
		return slices.Contains(all.holds, plan.MemoryUnit(gpu, i.Placement.Start))
	})
}

// takeFrom takes away what was made for claims. MIG mode belongs to others, too, where
// they have instances. What nobody owns is withheld while a record is lost.
func (all *owned) takeFrom(gpu *machine.GPU) {
	enables := all.enables(gpu)
	var others []machine.GPUInstance
	for _, i := range gpu.MIG.Instances {
		if !all.has(gpu, &i) {
			i.Withheld = i.Withheld || all.lost
			others = append(others, i)
		}
	}
	gpu.MIG.Instances = others
	if len(others) == 0 && enables && len(gpu.MIG.Profiles) > 0 { // else it could not be given whole
		gpu.MIG.Enabled, gpu.MIG.Pending = false, false
	}
}
