package main

import (
	"context"
	"fmt"

	"github.com/dovetail-dra/dovetail/test/bench/kubelet"
	"github.com/dovetail-dra/dovetail/test/bench/stats"
)

const (
	costRounds = 5
	costCalls  = 20 // of each kind, a round
)

// kind of claim whose calls are measured.
type kind struct {
	name   string
	create func(ctx context.Context, count int) ([]*kubelet.Claim, error)
	rounds []pair
}

// claimsOf a device.
func (b *bench) claimsOf(name, parameters, device string) kind {
	return kind{name: name, create: func(ctx context.Context, count int) ([]*kubelet.Claim, error) {
		return b.claims.create(ctx, parameters, repeat([]string{device}, count)...)
	}}
}

// sharesOf a device.
func (b *bench) sharesOf(name, parameters, device string) kind {
	return kind{name: name, create: func(ctx context.Context, count int) ([]*kubelet.Claim, error) {
		return b.claims.share(ctx, parameters, repeat([]string{device}, count)...)
	}}
}

// inTurns prepares and releases claims of all kinds, one at a time; between is called
// after each turn.
func (b *bench) inTurns(ctx context.Context, a *agent, kinds []kind, between func() error) error {
	for range costRounds {
		made := make([][]*kubelet.Claim, len(kinds))
		round := make([]pair, len(kinds))
		for k := range kinds {
			var err error
			if made[k], err = kinds[k].create(ctx, costCalls); err != nil {
				return err
			}
		}
		for i := range costCalls {
			for k := range kinds {
				if err := (side{a.program, made[k]}).one(ctx, i, &round[k]); err != nil {
					return fmt.Errorf("%s: %w", kinds[k].name, err)
				}
			}
			if err := between(); err != nil {
				return err
			}
		}
		for k := range kinds {
			kinds[k].rounds = append(kinds[k].rounds, round[k])
		}
	}
	return nil
}

// bothCalls of a claim's life.
var bothCalls = []struct {
	name string
	of   func(pair) stats.Sample
}{{"prepare", func(p pair) stats.Sample { return p.prepare }}, {"release", func(p pair) stats.Sample { return p.unprepare }}}

// costTable compares all kinds with the first, a whole GPU.
func costTable(kinds []kind) table {
	t := table{
		made: fmt.Sprintf("%d claims of each kind in turn, with %v between two calls. A ratio is the median of %d rounds' ratios of p50.",
			costRounds*costCalls, gap, costRounds),
		columns: []string{"Call", "p50", "p99", "Ratio to a whole GPU"},
	}
	for _, call := range bothCalls {
		whole := each(kinds[0].rounds, call.of)
		for i := range kinds {
			rounds := each(kinds[i].rounds, call.of)
			t.add(call.name+", "+kinds[i].name, stats.Milliseconds(stats.All(rounds).P50()), stats.Milliseconds(stats.All(rounds).P99()),
				fmt.Sprintf("%.2f", stats.Median(stats.Ratios(rounds, whole, stats.Sample.P50))))
		}
	}
	return t
}
