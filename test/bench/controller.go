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

const controllerRuns = 10

// controllerLine is the line of BenchmarkThousandNodes.
var controllerLine = regexp.MustCompile(`(?m)^BenchmarkThousandNodes\S*\s+\d+\s+(\S+) ns/op\s+(\S+) MB-heap\s+(\S+) writes/op$`)

// controller measures dovetail-controller's part in a cluster of a thousand nodes.
func (b *bench) controller(ctx context.Context) ([]table, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkThousandNodes$", "-benchtime", fmt.Sprint(controllerRuns, "x"), "./pkg/controller")
	cmd.Dir = b.Root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return controllerTable(out)
}

func controllerTable(out []byte) ([]table, error) {
	found := controllerLine.FindSubmatch(out)
	if found == nil {
		return nil, fmt.Errorf("no figures in\n%s", out)
	}
	var figures []float64
	for _, text := range found[1:] {
		figure, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure)
	}
	t := table{
		title: "The controller and a thousand nodes",
		made: fmt.Sprintf("`bin/bench -only controller`, which runs `go test -bench ThousandNodes ./pkg/controller`: the ResourceSlices of 1,000 nodes with 8 H100 and all their partitions "+
			"on a real API server of its own, and three PartitionClasses, of which one is changed to another profile and back, %d times. Memory is the controller's part of the "+
			"Go heap, with all slices in its caches. Writes are requests to the API server, for all classes: the DeviceClass, and the status.", controllerRuns),
		columns: []string{"What", "Dovetail"},
	}
	t.add("memory", fmt.Sprintf("%.0f MB", figures[1]))
	t.add("from a changed class to its status, mean", stats.Milliseconds(time.Duration(figures[0])))
	t.add("API writes for each change", fmt.Sprintf("%.1f", figures[2]))
	return []table{t}, nil
}
