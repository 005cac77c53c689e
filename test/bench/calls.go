package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dovetail-dra/dovetail/test/bench/stats"
)

const (
	callRounds  = 5
	pacedCalls  = 40 // of each driver, a round, with and without held claims
	burstRounds = 15
)

// calls measures Prepare and Unprepare of one whole GPU.
func (b *bench) calls(ctx context.Context) (tables []table, err error) {
	floor, err := b.startFloor(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, floor.stop()) }()
	agent, err := b.dgx(ctx, "agent")
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, agent.stop()) }()

	var warm, alone, holding, burst latencies
	if err := b.paced(ctx, floor, agent.program, pacedCalls/4, &warm); err != nil {
		return nil, err
	}
	for range callRounds {
		if err := b.paced(ctx, floor, agent.program, pacedCalls, &alone); err != nil {
			return nil, err
		}
		others, err := b.claims.create(ctx, "", b.devices[:held]...)
		if err != nil {
			return nil, err
		}
		if _, err := together(ctx, agent.driver.Prepare, others); err != nil {
			return nil, err
		}
		if err := b.paced(ctx, floor, agent.program, pacedCalls, &holding); err != nil {
			return nil, err
		}
		if _, err := together(ctx, agent.driver.Unprepare, others); err != nil {
			return nil, err
		}
	}
	if err := b.bursts(ctx, floor, agent.program, burstRounds, &burst); err != nil {
		return nil, err
	}
	return []table{callTable(&alone, &holding, &burst), diskTable(&alone, &holding, &burst)}, nil
}

// figures are how a number of calls is summed up.
var figures = []struct {
	name string
	of   func(stats.Sample) time.Duration
}{{"p50", stats.Sample.P50}, {"p99", stats.Sample.P99}}

func callTable(alone, holding, burst *latencies) table {
	t := table{
		title: "Prepare and release one whole GPU",
		made: fmt.Sprintf("`make bench`, or `bin/bench -only calls`. Each call is for a claim of its own, %v after the one before; %d calls of each "+
			"kind and driver, and %d bursts of 8 at once. p50 and p99 are of all calls; a ratio is the median of the rounds' ratios, for p99 of all. "+
			"The agent writes a claim's status half a second after preparing it: bursts wait for that before they release, paced claims are gone by then.",
			gap, callRounds*pacedCalls, burstRounds),
		columns: []string{"Call", "Dovetail", "Floor", "Ratio", "Target", "NVIDIA"},
	}
	prepare := func(p pair) stats.Sample { return p.prepare }
	unprepare := func(p pair) stats.Sample { return p.unprepare }
	for _, row := range []struct {
		name   string
		call   func(pair) stats.Sample
		l      *latencies
		target string
		nvidia [2]string
	}{
		{"prepare, one at a time", prepare, alone, "≤ 1.1", [2]string{"5.5 ms", "8.5–13.9 ms"}},
		{"prepare, 7 claims held", prepare, holding, "≤ 1.1", [2]string{"14.2 ms", "21–29 ms"}},
		{"prepare, 8 at once", prepare, burst, "≤ 1.2", [2]string{"317 ms", "725 ms"}},
		{"release, one at a time", unprepare, alone, "≤ 1.1", [2]string{"1.5 ms", "4.3 ms"}},
		{"release, 7 claims held", unprepare, holding, "≤ 1.1", [2]string{"", ""}},
		{"release, 8 at once", unprepare, burst, "≤ 1.2", [2]string{"", ""}},
	} {
		agent, floor := each(row.l.agent, row.call), each(row.l.floor, row.call)
		for i, f := range figures {
			ratio := stats.Median(stats.Ratios(agent, floor, f.of))
			if f.name == "p99" {
				ratio = stats.Median(stats.Ratios([]stats.Sample{stats.All(agent)}, []stats.Sample{stats.All(floor)}, f.of))
			}
			t.add(row.name+", "+f.name, stats.Milliseconds(f.of(stats.All(agent))), stats.Milliseconds(f.of(stats.All(floor))),
				fmt.Sprintf("%.2f", ratio), row.target, row.nvidia[i])
		}
	}
	for _, call := range []struct {
		name   string
		of     func(pair) stats.Sample
		nvidia string
	}{{"prepare", prepare, "2.6"}, {"release", unprepare, ""}} {
		a, h := each(alone.agent, call.of), each(holding.agent, call.of)
		t.add(call.name+", 7 held against none, p50", stats.Milliseconds(stats.All(h).P50()), stats.Milliseconds(stats.All(a).P50())+" (none held)",
			fmt.Sprintf("%.2f", stats.Median(stats.Ratios(h, a, stats.Sample.P50))), "≤ 1.05", call.nvidia)
	}
	return t
}

func each(pairs []pair, call func(pair) stats.Sample) []stats.Sample {
	var samples []stats.Sample
	for _, p := range pairs {
		samples = append(samples, call(p))
	}
	return samples
}

// diskTable shows what of the difference to the floor is the disk's.
func diskTable(alone, holding, burst *latencies) table {
	t := table{
		title: "What of a prepare is the disk",
		made: "The same run: what a prepare does to the disk, done bare and in turn with the calls. The record is written durably (over a spare file: " +
			"write, fdatasync, rename, fsync of the folder); device metadata, which the kubelet plugin helper writes, takes two folders and a file, not synced. " +
			"All are p50. The agent makes the folders while the record is written.",
		columns: []string{"Prepare", "Dovetail", "Floor", "Durable record", "Metadata files", "Ratio to floor + record", "Ratio to floor + both"},
	}
	for _, row := range []struct {
		name string
		l    *latencies
	}{{"one at a time", alone}, {"7 claims held", holding}, {"8 at once", burst}} {
		prepare := func(p pair) stats.Sample { return p.prepare }
		var durable, metadata, both []stats.Sample
		for _, w := range row.l.disk {
			durable, metadata, both = append(durable, w.durable), append(metadata, w.metadata), append(both, w.both())
		}
		p50 := func(rounds []stats.Sample) time.Duration { return stats.All(rounds).P50() }
		a, f := p50(each(row.l.agent, prepare)), p50(each(row.l.floor, prepare))
		t.add(row.name, stats.Milliseconds(a), stats.Milliseconds(f), stats.Milliseconds(p50(durable)), stats.Milliseconds(p50(metadata)),
			fmt.Sprintf("%.2f", float64(a)/float64(f+p50(durable))), fmt.Sprintf("%.2f", float64(a)/float64(f+p50(both))))
	}
	return t
}
