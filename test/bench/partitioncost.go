package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
	"github.com/dovetail-dra/dovetail/test/bench/stats"
)

const (
	costRounds = 5
	costCalls  = 20 // of each kind, a round
)

// kind of claim whose calls are measured.
type kind struct {
	name, device string
	rounds       []pair
}

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
		{name: "whole GPU", device: b.devices[gpus-1]},
		{name: "first partition of a GPU", device: byGPU[0][0]},
		{name: "further partition", device: byGPU[1][1]},
	}
	var alone pair
	for range costRounds {
		if err := b.costRound(ctx, a, kinds, bare, &alone); err != nil {
			return t, err
		}
	}
	if err := a.driver.Unprepare(ctx, neighbour[0]); err != nil {
		return t, err
	}
	return costTable(kinds, alone), nil
}

// costRound measures all kinds in turn, and the bare changes of the hardware.
func (b *bench) costRound(ctx context.Context, a *agent, kinds []kind, bare bareMachine, alone *pair) error {
	devices := make([]string, len(kinds))
	for i := range kinds {
		devices[i] = kinds[i].device
	}
	made, err := b.claims.create(ctx, "", repeat(devices, len(kinds)*costCalls)...)
	if err != nil {
		return err
	}
	round := make([]pair, len(kinds))
	for i := range made {
		which := i % len(kinds)
		if err := (side{a.program, made}).one(ctx, i, &round[which]); err != nil {
			return err
		}
		if which == 0 {
			if err := bare.change(alone); err != nil {
				return err
			}
		}
	}
	for i := range kinds {
		kinds[i].rounds = append(kinds[i].rounds, round[i])
	}
	return nil
}

func costTable(kinds []kind, alone pair) table {
	t := table{
		title: "What a partition costs without the hardware's time",
		made: fmt.Sprintf("The same run, before the calls are slowed: %d claims of each kind in turn, with %v between two calls. "+
			"A ratio is the median of %d rounds' ratios of p50. The first partition of a GPU switches its MIG mode on, and the last off. "+
			"Bare: the changes that the simulated hardware is made to show for a first partition; it replaces a file with its state for each.",
			costRounds*costCalls, gap, costRounds),
		columns: []string{"Call", "p50", "p99", "Ratio to a whole GPU"},
	}
	for _, call := range []struct {
		name string
		of   func(pair) stats.Sample
	}{{"prepare", func(p pair) stats.Sample { return p.prepare }}, {"release", func(p pair) stats.Sample { return p.unprepare }}} {
		whole := each(kinds[0].rounds, call.of)
		for i := range kinds {
			rounds := each(kinds[i].rounds, call.of)
			t.add(call.name+", "+kinds[i].name, stats.Milliseconds(stats.All(rounds).P50()), stats.Milliseconds(stats.All(rounds).P99()),
				fmt.Sprintf("%.2f", stats.Median(stats.Ratios(rounds, whole, stats.Sample.P50))))
		}
		t.add(call.name+", bare", stats.Milliseconds(call.of(alone).P50()), stats.Milliseconds(call.of(alone).P99()), "")
	}
	return t
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
