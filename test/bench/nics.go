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
		{"./pkg/hardware/rdma", "^(BenchmarkDescribeNICs|BenchmarkMoveNIC)$"},
		{"./cmd/dovetail-hook", "^BenchmarkProgram$"},
	} {
		if err := f.run(ctx, b.Root, of.pkg, of.names); err != nil {
			return nil, err
		}
	}
	t := table{
		title: "NICs: description, and the time by which a container starts later",
		made: "`bin/bench -only nics`, which is `go test -bench .` in `pkg/hardware/rdma` and `cmd/dovetail-hook`, medians of 5: files of sysfs in a tree, " +
			"network namespaces and veths of this machine's kernel, which has no RDMA device. What the kernel takes to move an interface is most of a move: " +
			"it waits for all processors several times.",
		columns: []string{"What", "Time", "Reads of sysfs"},
	}
	for _, row := range []struct{ what, name string }{
		{"description of 16 NICs with 16 virtual functions each", "DescribeNICs"},
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
	return []table{t}, nil
}

func (f *nicFigures) run(ctx context.Context, root, pkg, names string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", names, "-benchtime", "30x", "-count", "5", pkg)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	for _, m := range nicLine.FindAllStringSubmatch(string(out), -1) {
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
