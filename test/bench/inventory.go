package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/dovetail-dra/dovetail/test/bench/stats"
)

const inventoryRuns = 15

// benchLine is a line of go test -bench.
var benchLine = regexp.MustCompile(`(?m)^Benchmark(\w+?)(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op`)

// inventory compares the description of sixteen GPUs with the bare NVML calls.
func (b *bench) inventory(ctx context.Context) ([]table, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^(BenchmarkDescribe|BenchmarkCalls)$", "-benchtime", "100x", "-count", "7", "./pkg/hardware/nvml")
	cmd.Dir = b.Root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	times := map[string][]float64{}
	for _, m := range benchLine.FindAllStringSubmatch(string(out), -1) {
		ns, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		times[m[1]] = append(times[m[1]], ns)
	}
	describe, calls := stats.Median(times["Describe"]), stats.Median(times["Calls"])
	if describe == 0 || calls == 0 {
		return nil, fmt.Errorf("no figures in\n%s", out)
	}
	t := table{
		title: "Inventory of sixteen GPUs",
		made: "`bin/bench -only inventory`: the first row is `go test -bench . ./pkg/hardware/nvml`, where the bare calls are made one after the other " +
			"in the same process, while the description asks some GPUs at once; the simulated NVML answers each within microseconds. The second is the whole program, beside one that only prints its version.",
		columns: []string{"What", "Dovetail", "Without it", "Ratio", "Target"},
	}
	t.add("description, against the bare NVML calls", stats.Milliseconds(time.Duration(describe)), stats.Milliseconds(time.Duration(calls)),
		fmt.Sprintf("%.2f", describe/calls), "≤ 1.5")
	inventory, version, err := b.inventoryProgram(ctx)
	if err != nil {
		return nil, err
	}
	t.add("`dovetail-node inventory`, against `--version`", stats.Milliseconds(inventory.P50()), stats.Milliseconds(version.P50()), "", "")
	return []table{t}, nil
}

func (b *bench) inventoryProgram(ctx context.Context) (inventory, version stats.Sample, err error) {
	m, err := b.machine("sixteen")
	if err != nil {
		return nil, nil, err
	}
	for range inventoryRuns {
		for _, run := range []struct {
			args []string
			into *stats.Sample
		}{{append([]string{"inventory"}, rootFlags(m.Root())...), &inventory}, {[]string{"--version"}, &version}} {
			begin := time.Now()
			if out, err := exec.CommandContext(ctx, b.node, run.args...).CombinedOutput(); err != nil {
				return nil, nil, fmt.Errorf("%w\n%s", err, out)
			}
			*run.into = append(*run.into, time.Since(begin))
		}
	}
	return inventory, version, nil
}
