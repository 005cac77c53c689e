package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dovetail-dra/dovetail/test/bench/stats"
)

const (
	parallelClaims = 100
	parallelRounds = 5
	slowCall       = "nvmlDeviceSetComputeMode"
	slowBy         = 200 * time.Millisecond
)

// parallel prepares and releases claims on all GPUs at once, each of which has the
// hardware set, with and without a GPU that is slow. What waits for that GPU is only
// what concerns it, if the other seven are as fast as ever.
func (b *bench) parallel(ctx context.Context) (tables []table, err error) {
	a, err := b.dgx(ctx, "parallel")
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, a.stop()) }()
	var plain, slowed []pair // of the seven
	var slow pair
	for range parallelRounds {
		for _, by := range []time.Duration{0, slowBy} {
			// The slow GPU's index is 0, and its device the first.
			if err := a.machine.Slow("0", slowCall, by); err != nil {
				return nil, err
			}
			first, others, err := b.eachGPU(ctx, a)
			if err != nil {
				return nil, err
			}
			if by == 0 {
				plain = append(plain, others)
				continue
			}
			slowed = append(slowed, others)
			slow.prepare, slow.unprepare = append(slow.prepare, first.prepare...), append(slow.unprepare, first.unprepare...)
		}
	}
	if err := a.machine.Slow("0", slowCall, 0); err != nil { // what is measured next is not slow
		return nil, err
	}
	t := table{
		title: fmt.Sprintf("%d claims in parallel over 8 GPUs", parallelClaims),
		made: fmt.Sprintf("`bin/bench -only parallel`: a worker for each GPU prepares and releases claims that set its compute mode, without a pause; "+
			"%d rounds of each, in turn. Slow: %s takes %v longer on one GPU. Ratios are the median of rounds; "+
			"while the slow one waits, seven workers share the cores instead of eight, so a little under 1 is to be expected.", parallelRounds, slowCall, slowBy),
		columns: []string{"Seven GPUs' claims", "All well", "One slow", "Ratio", "Target", "The slow GPU's own"},
	}
	for _, call := range bothCalls {
		before, with := each(plain, call.of), each(slowed, call.of)
		for _, f := range figures {
			t.add(call.name+", "+f.name, stats.Milliseconds(f.of(stats.All(before))), stats.Milliseconds(f.of(stats.All(with))),
				fmt.Sprintf("%.2f", stats.Median(stats.Ratios(with, before, f.of))), "≤ 1 (unchanged)", stats.Milliseconds(f.of(call.of(slow))))
		}
	}
	return []table{t}, nil
}

// eachGPU has a worker for each GPU; it returns what the first one's calls took, and
// those of all the others.
func (b *bench) eachGPU(ctx context.Context, a *agent) (first, others pair, err error) {
	made, err := b.claims.create(ctx, exclusive, repeat(b.devices, parallelClaims)...)
	if err != nil {
		return first, others, err
	}
	workers := make([]pair, len(b.devices))
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			for i := w; i < len(made); i += len(workers) {
				prepared, err := timed(ctx, a.driver.Prepare, made[i])
				if err != nil {
					return err
				}
				released, err := timed(ctx, a.driver.Unprepare, made[i])
				if err != nil {
					return err
				}
				workers[w].prepare, workers[w].unprepare = append(workers[w].prepare, prepared), append(workers[w].unprepare, released)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return first, others, err
	}
	for _, w := range workers[1:] {
		others.prepare, others.unprepare = append(others.prepare, w.prepare...), append(others.unprepare, w.unprepare...)
	}
	return workers[0], others, nil
}
