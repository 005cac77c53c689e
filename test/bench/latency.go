package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dovetail-dra/dovetail/test/bench/kubelet"
	"github.com/dovetail-dra/dovetail/test/bench/stats"
	"github.com/dovetail-dra/dovetail/test/harness"
)

const (
	// gap is left between calls that are paced.
	gap = 10 * time.Millisecond
	// held is how many claims are held in the second half of a round.
	held = 7
	// rest is left between bursts, for what a driver does behind the kubelet's back.
	rest = 700 * time.Millisecond
)

// pair is a driver's two calls.
type pair struct{ prepare, unprepare stats.Sample }

// latencies are what rounds of calls have given, a round an element.
type latencies struct {
	floor, agent []pair
	disk         []fileWork
}

// side is one of the two drivers, with claims of its own.
type side struct {
	*program
	claims []*kubelet.Claim
}

// paced prepares and releases claims one at a time, the two drivers in turn.
func (b *bench) paced(ctx context.Context, floor, agent *program, count int, l *latencies) error {
	devices := repeat(b.devices[held:held+1], 2*count)
	made, err := b.claims.create(ctx, "", devices...)
	if err != nil {
		return err
	}
	sides := []side{{floor, made[:count]}, {agent, made[count:]}}
	var results [2]pair
	var disk fileWork
	for i := range count {
		for turn := range sides {
			which := (turn + i) % len(sides) // nobody is always first
			if err := sides[which].one(ctx, i, &results[which]); err != nil {
				return err
			}
		}
		work, err := doFileWork(b.disk, 1)
		if err != nil {
			return err
		}
		disk.durable, disk.metadata = append(disk.durable, work.durable...), append(disk.metadata, work.metadata...)
		if err := harness.Pass(ctx, gap); err != nil {
			return err
		}
	}
	l.floor, l.agent, l.disk = append(l.floor, results[0]), append(l.agent, results[1]), append(l.disk, disk)
	return nil
}

// one prepares and releases one claim, with a gap after each.
func (s side) one(ctx context.Context, i int, p *pair) error {
	for _, call := range []struct {
		do   func(context.Context, *kubelet.Claim) error
		into *stats.Sample
	}{{s.driver.Prepare, &p.prepare}, {s.driver.Unprepare, &p.unprepare}} {
		took, err := timed(ctx, call.do, s.claims[i])
		if err != nil {
			return err
		}
		*call.into = append(*call.into, took)
		if err := harness.Pass(ctx, gap); err != nil {
			return err
		}
	}
	return nil
}

func timed(ctx context.Context, do func(context.Context, *kubelet.Claim) error, c *kubelet.Claim) (time.Duration, error) {
	begin := time.Now()
	err := do(ctx, c)
	return time.Since(begin), err
}

// bursts prepares, and then releases, as many claims at once as there are GPUs; the
// two drivers in turn.
func (b *bench) bursts(ctx context.Context, floor, agent *program, count int, l *latencies) error {
	for i := range count {
		made, err := b.claims.create(ctx, "", repeat(b.devices, 2*len(b.devices))...)
		if err != nil {
			return err
		}
		sides := []side{{floor, made[:len(b.devices)]}, {agent, made[len(b.devices):]}}
		var results [2]pair
		for turn := range sides {
			which := (turn + i) % len(sides)
			if err := sides[which].burst(ctx, &results[which]); err != nil {
				return err
			}
		}
		disk, err := doFileWork(b.disk, len(b.devices))
		if err != nil {
			return err
		}
		l.floor, l.agent, l.disk = append(l.floor, results[0]), append(l.agent, results[1]), append(l.disk, disk)
	}
	return nil
}

// burst calls for all claims of a side at once, and then again to release them.
func (s side) burst(ctx context.Context, p *pair) (err error) {
	if p.prepare, err = together(ctx, s.driver.Prepare, s.claims); err != nil {
		return err
	}
	if err := harness.Pass(ctx, rest); err != nil {
		return err
	}
	if p.unprepare, err = together(ctx, s.driver.Unprepare, s.claims); err != nil {
		return err
	}
	return harness.Pass(ctx, 5*gap)
}

func together(ctx context.Context, do func(context.Context, *kubelet.Claim) error, claims []*kubelet.Claim) (stats.Sample, error) {
	took := make(stats.Sample, len(claims))
	group, ctx := errgroup.WithContext(ctx)
	for i, c := range claims {
		group.Go(func() (err error) {
			took[i], err = timed(ctx, do, c)
			return err
		})
	}
	return took, group.Wait()
}

func repeat(devices []string, count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = devices[i%len(devices)]
	}
	return all
}
