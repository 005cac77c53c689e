package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// made is what the journal says was made for claims, or may have been: an intent
// is on record before the hardware is touched, and stays until it is undone.
type made struct {
	enabled    map[string]bool              // MIG mode, by GPU
	partitions map[string][]*plan.Partition // by GPU
}

// made reads the journal.
func (m *Manager) made() (made, error) {
	all := made{enabled: map[string]bool{}, partitions: map[string][]*plan.Partition{}}
	err := m.eachStep(func(_ journal.Claim, s plan.Step) {
		if s.Kind == plan.EnableMIG && !s.MIGBefore {
			all.enabled[s.GPU] = true
		}
		if s.Kind == plan.MakeGPUInstance {
			all.partitions[s.GPU] = append(all.partitions[s.GPU], s.Partition)
		}
	})
	return all, err
}

// eachStep goes through the steps of this boot's records. Of a damaged record the
// copy in the claim's CDI specification counts.
func (m *Manager) eachStep(visit func(journal.Claim, plan.Step)) error {
	records, err := m.Journal.List()
	if err != nil {
		return err
	}
	for _, r := range records {
		entry := r.Entry
		if entry == nil {
			entry, _ = m.copyOf(r.UID)
		}
		if entry == nil || entry.BootID != m.BootID {
			continue
		}
		for i := range entry.Steps {
			s, err := stepOf(entry, i)
			if err != nil {
				return err
			}
			visit(entry.Claim, s)
		}
	}
	return nil
}

// Unclaimed describes the machine as it is apart from claims: without the
// partitions that were made for them, and with MIG mode off where it is on for them
// alone. So what is published stays as it is while claims come and go, and what
// remains of partitions is somebody else's.
func (m *Manager) Unclaimed(ctx context.Context, describe func(context.Context) (machine.Machine, error)) (machine.Machine, error) {
	// What exists when the hardware is looked at is on record then, but claims may
	// come just after the one reading, and go just before the other.
	before, err := m.made()
	if err != nil {
		return machine.Machine{}, fmt.Errorf("read the journal: %w", err)
	}
	now, err := describe(ctx)
	if err != nil {
		return now, err
	}
	after, err := m.made()
	if err != nil {
		return machine.Machine{}, fmt.Errorf("read the journal: %w", err)
	}
	now.GPUs = slices.Clone(now.GPUs)
	for i := range now.GPUs {
		before.takeFrom(&now.GPUs[i])
		after.takeFrom(&now.GPUs[i])
	}
	return now, nil
}

// takeFrom takes away what was made for claims. MIG mode belongs to others, too, where
// they have instances.
func (all made) takeFrom(gpu *machine.GPU) {
	gpu.MIG.Instances = slices.DeleteFunc(slices.Clone(gpu.MIG.Instances), func(i machine.GPUInstance) bool {
		return slices.ContainsFunc(all.partitions[gpu.UUID], func(p *plan.Partition) bool { return p.Is(&i) })
	})
	if len(gpu.MIG.Instances) > 0 {
		return
	}
	gpu.MIG.Instances = nil
	if all.enabled[gpu.UUID] {
		gpu.MIG.Enabled, gpu.MIG.Pending = false, false
	}
}

// wholeGPU stands for a GPU instance where the GPU itself is meant.
const wholeGPU = -1

// holders adds to an error that says that something is in use by whom.
func (m *Manager) holders(err error, gpu string, instance int) error {
	if !errors.Is(err, failure.Busy) || m.Holders == nil {
		return err
	}
	g, known := m.Machine().GPU(gpu)
	if !known {
		return err
	}
	who, unknown := m.Holders(g, instance)
	if unknown == nil && len(who) == 0 && instance != wholeGPU {
		who, unknown = m.Holders(g, wholeGPU) // some monitors only open the GPU
	}
	switch {
	case unknown != nil:
		return fmt.Errorf("%w; who holds it could not be found out: %w", err, unknown)
	case len(who) == 0:
		return fmt.Errorf("%w; no process of this node has it open any more", err)
	}
	return fmt.Errorf("%w; it is held by %s", err, list(who))
}
