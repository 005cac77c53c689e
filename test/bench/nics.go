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

// nicLine is a line of go test -bench, of a benchmark or one of its parts, with what else
// it reports.
var nicLine = regexp.MustCompile(`(?m)^Benchmark([\w/]+?)(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op(?:\s+([0-9.]+) reads/op)?`)

// nicFigures are by a benchmark's name: medians of times, and reads.
type nicFigures struct {
	times map[string][]float64
	reads map[string]float64
}

// nics measures the adapter and the hook on this machine's kernel.
func (b *bench) nics(ctx context.Context) ([]table, error) {
	f := nicFigures{times: map[string][]float64{}, reads: map[string]float64{}}
	for _, of := range []struct{ pkg, names string }{
		{"./pkg/hardware/host", "^BenchmarkDescribe$"},
		{"./pkg/hardware/rdma", "^BenchmarkMoveNIC$"},
		{"./cmd/dovetail-hook", "^BenchmarkProgram$"},
	} {
		if err := f.run(ctx, b.Root, of.pkg, of.names); err != nil {
			return nil, err
		}
	}
	t := table{
		title: "NICs: description, and the time by which a container starts later",
		made: "`bin/bench -only nics`, which is `go test -bench .` in `pkg/hardware/host`, `pkg/hardware/rdma` and `cmd/dovetail-hook`, medians of 5: the simulated NVML, " +
			"files of sysfs in a tree (what is read of the NICs is counted), network namespaces and veths of this machine's kernel, which has no RDMA device. What the kernel takes to move an interface is most of a move: " +
			"it waits for all processors several times.",
		columns: []string{"What", "Time", "Reads of sysfs"},
	}
	for _, row := range []struct{ what, name string }{
		{"description of 8 GPUs, and 16 NICs with 16 virtual functions each", "Describe"},
		{"the hook moves a NIC", "Program/moves"},
		{"the hook finds it moved, for the Pod's next container", "Program/moved"},
		{"the hook prints its version", "Program/version"},
		{"the move alone", "MoveNIC/there"},
		{"bringing it home", "MoveNIC/back"},
	} {
		times := f.times[row.name]
		if len(times) == 0 {
			return nil, fmt.Errorf("no figure of %s", row.name)
		}
		reads := ""
		if n := f.reads[row.name]; n > 0 {
			reads = fmt.Sprintf("%.0f", n)
		}
		t.add(row.what, stats.Milliseconds(time.Duration(stats.Median(times))), reads)
	}
	lives, err := b.pairLives(ctx)
	return []table{t, lives}, err
}

// pairLine is a line of BenchmarkPreparePairs, whose figures are in alphabetical order of
// their units.
var pairLine = regexp.MustCompile(`(?m)^BenchmarkPreparePairs/([\w-]+?)(?:-\d+)?\s+\d+\s+[0-9.]+ ns/op` +
	`\s+([0-9.]+) prepare-p50-ns\s+([0-9.]+) prepare-p99-ns\s+([0-9.]+) release-p50-ns\s+([0-9.]+) release-p99-ns`)

// pairLives measures claims of eight pairs beside those of one GPU, in one process.
func (b *bench) pairLives(ctx context.Context) (table, error) {
	const rounds = 5
	out, err := goBench(ctx, b.Root, "./pkg/claim", "^BenchmarkPreparePairs$", "200x", rounds)
	if err != nil {
		return table{}, err
	}
	found := map[string][][]float64{} // figures of each round, by what is claimed
	for _, m := range pairLine.FindAllStringSubmatch(out, -1) {
		figures := make([]float64, len(m)-2)
		for i, text := range m[2:] {
			if figures[i], err = strconv.ParseFloat(text, 64); err != nil {
				return table{}, err
			}
		}
		found[m[1]] = append(found[m[1]], figures)
	}
	t := table{
		title: "Prepare and release eight pairs",
		made: fmt.Sprintf("`bin/bench -only nics`, which is `go test -bench PreparePairs` in `pkg/claim`, medians of %d rounds: without the kubelet and the API server; "+
			"the NICs are veths of this machine's kernel, and the record is on the disk. The containers' hooks are not in it.", rounds),
		columns: []string{"Call", "8 pairs", "1 GPU"},
	}
	for i, call := range []string{"prepare, p50", "prepare, p99", "release, p50", "release, p99"} {
		row := []string{call}
		for _, what := range []string{"8-pairs", "1-GPU"} {
			if len(found[what]) != rounds {
				return table{}, fmt.Errorf("%d rounds of %s, want %d, in\n%s", len(found[what]), what, rounds, out)
			}
			var each []float64
			for _, figures := range found[what] {
				each = append(each, figures[i])
			}
			row = append(row, stats.Milliseconds(time.Duration(stats.Median(each))))
		}
		t.add(row...)
	}
	return t, nil
}

// goBench runs benchmarks of a package and returns what they print.
func goBench(ctx context.Context, root, pkg, names, times string, count int) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", names, "-benchtime", times, "-count", strconv.Itoa(count), pkg)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return string(out), nil
}

func (f *nicFigures) run(ctx context.Context, root, pkg, names string) error {
	out, err := goBench(ctx, root, pkg, names, "30x", 5)
	if err != nil {
		return err
	}
	for _, m := range nicLine.FindAllStringSubmatch(out, -1) {
		ns, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return err
		}
		f.times[m[1]] = append(f.times[m[1]], ns)
		if m[3] == "" {
			continue
		}
		if f.reads[m[1]], err = strconv.ParseFloat(m[3], 64); err != nil {
			return err
		}
	}
	return nil
}
