// Command bench measures the agent that ships, on a real API server and over the
// kubelet's own protocol, with simulated GPUs; and beside it, in the same run, the
// least that any driver costs. Scheduling and packing need neither: they are measured
// with the scheduler's library, and with a model of it. It prints tables, and with
// -update writes them to docs/benchmarks.md. `make bench` builds what it needs.
//
// Wherever two things are compared they take turns, so that what else goes on in the
// machine concerns both. Figures are for people, and neither pass nor fail; what must
// never be, such as a process for a further share, is an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// timeout bounds everything, for a cluster that does not answer.
const timeout = 20 * time.Minute

func main() {
	launcher := flag.String("cluster", "bin/cluster", "path of test/cluster's `program`")
	update := flag.Bool("update", false, "write the figures to "+document+"; with -only, these, and leave the others")
	only := flag.String("only", "", "measure only these: `names` of "+strings.Join(names(), ", "))
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var code int
	var err error
	if harness.Inside() {
		err = measure(ctx, *only, *update)
	} else {
		l := harness.Launcher{Path: *launcher, Name: "bench", Out: os.Stderr}
		code, err = harness.Bring{Launcher: l, Nodes: 1}.Around(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = max(code, 1)
	}
	stop()
	cancel()
	os.Exit(code)
}

// benchmark fills in some tables.
type benchmark struct {
	name string
	run  func(*bench, context.Context) ([]table, error)
}

var benchmarks = []benchmark{
	{"calls", (*bench).calls},
	{"files", (*bench).files},
	{"parallel", (*bench).parallel},
	{"partitions", (*bench).partitions},
	{"shares", (*bench).shares},
	{"footprint", (*bench).footprint},
	{"kubelet", (*bench).kubelet},
	{"inventory", (*bench).inventory},
	{"nics", (*bench).nics},
	{"controller", (*bench).controller},
	{"scheduling", (*bench).scheduling},
	{"packing", (*bench).packing},
}

func names() []string {
	var all []string
	for _, b := range benchmarks {
		all = append(all, b.name)
	}
	return all
}

func measure(ctx context.Context, only string, update bool) (err error) {
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		wanted[name] = true
	}
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer func() { err = join(err, b.remove()) }()
	begin := time.Now()
	var tables []table
	for _, one := range benchmarks {
		if only != "" && !wanted[one.name] {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring: %s\n", one.name)
		made, err := one.run(b, ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		for _, t := range made {
			t.print(os.Stdout)
		}
		tables = append(tables, made...)
	}
	where, err := b.words()
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\nTook %.0f s.\n", where, time.Since(begin).Seconds())
	if !update {
		return nil
	}
	if only != "" {
		return updateDocument(filepath.Join(b.Root, document), where, tables)
	}
	return writeDocument(filepath.Join(b.Root, document), where, tables)
}

// join is errors.Join, short since it is everywhere here.
func join(errs ...error) error { return errors.Join(errs...) }
