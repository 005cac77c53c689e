package main

import (
	"context"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
	"github.com/dovetail-dra/dovetail/test/bench/stats"
)

// partitionCost measures claims of partitions without delays, in turn with those of a
// whole GPU.
func (b *bench) partitionCost(ctx context.Context, a *agent, byGPU [][]string) (t table, err error) {
	// A partition that stays keeps its GPU's MIG mode on.
	neighbour, err := b.claims.create(ctx, "", byGPU[1][0])
	if err != nil {
		return t, err
	}
	if err := a.driver.Prepare(ctx, neighbour[0]); err != nil {
		return t, err
	}
	bare, err := b.bareMachine()
	if err != nil {
		return t, err
	}
	kinds := []kind{
		b.claimsOf("whole GPU", "", b.devices[gpus-1]),
		b.claimsOf("first partition of a GPU", "", byGPU[0][0]),
		b.claimsOf("further partition", "", byGPU[1][1]),
	}
	var alone pair
	if err := b.inTurns(ctx, a, kinds, func() error { return bare.change(&alone) }); err != nil {
		return t, err
	}
	if err := a.driver.Unprepare(ctx, neighbour[0]); err != nil {
		return t, err
	}
	t = costTable(kinds)
	t.title = "What a partition costs without the hardware's time"
	t.made = "The same run, before the calls are slowed: " + t.made + " The first partition of a GPU switches its MIG mode on, and the last off. " +
		"Bare: the changes that the simulated hardware is made to show for a first partition; it replaces a file with its state for each."
	for _, call := range bothCalls {
		t.add(call.name+", bare", stats.Milliseconds(call.of(alone).P50()), stats.Milliseconds(call.of(alone).P99()), "")
	}
	return t, nil
}

// bareMachine is a simulated machine that no agent looks at.
type bareMachine struct {
	*simulator.Machine
	gpu     string // UUID
	profile int    // ID
}

func (b *bench) bareMachine() (m bareMachine, err error) {
	if m.Machine, err = b.machine("hgx-h200"); err != nil {
		return m, err
	}
	tree.Follow(m.Machine)
	state, err := m.State()
	if err != nil {
		return m, err
	}
	gpu := state.GPU(0)
	m.gpu, m.profile = gpu.Spec.UUID, gpu.Model.MIG.Profiles[0].ID
	return m, nil
}

// change makes a first partition of the smallest profile, and destroys it.
func (m bareMachine) change(p *pair) error {
	begin := time.Now()
	if err := m.SetMIGMode(m.gpu, true); err != nil {
		return err
	}
	made, err := m.MakeGPUInstance(m.gpu, m.profile, nil)
	if err != nil {
		return err
	}
	inside, err := m.MakeComputeInstance(m.gpu, made.ID, 1)
	if err != nil {
		return err
	}
	p.prepare = append(p.prepare, time.Since(begin))
	begin = time.Now()
	err = join(m.DestroyComputeInstance(m.gpu, made.ID, inside.ID), m.DestroyGPUInstance(m.gpu, made.ID), m.SetMIGMode(m.gpu, false))
	p.unprepare = append(p.unprepare, time.Since(begin))
	return err
}
