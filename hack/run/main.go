// Command run runs groups of checks, shows how they go, and closes with a table
// and one line that counts every test: "N passed, N failed, N skipped". It is
// what the Makefile's verify, unit, vm, e2e and test targets are made of.
//
//	go run ./hack/run verify unit vm e2e
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/hack/toolbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, wanted []string) (bool, error) {
	root, err := toolbox.Root()
	if err != nil {
		return false, err
	}
	if err := os.Chdir(root); err != nil {
		return false, err
	}
	known := groups()
	var steps []step
	for _, name := range wanted {
		g, ok := known[name]
		if !ok {
			return false, fmt.Errorf("no group %q; there are verify, unit, vm, e2e", name)
		}
		steps = append(steps, g...)
	}
	for i := range steps {
		steps[i].asked = len(wanted) == 1
	}
	if len(steps) == 0 {
		return false, fmt.Errorf("usage: run GROUP... (verify, unit, vm, e2e)")
	}
	if err := os.MkdirAll("out/log", 0o755); err != nil {
		return false, err
	}

	// A step that needs another's long work has it begun before the first step.
	begun := map[string]*background{}
	for _, s := range steps {
		if s.ahead != nil && begun[s.ahead.name] == nil && !s.absent() {
			begun[s.ahead.name] = begin(ctx, *s.ahead)
		}
	}
	defer func() {
		for _, b := range begun {
			b.stop()
		}
	}()

	began := time.Now()
	var results []result
	for i, s := range steps {
		if ctx.Err() != nil {
			break
		}
		fmt.Printf("\n=== [%d/%d] %s: %s\n", i+1, len(steps), s.group, s.name)
		results = append(results, s.execute(ctx, begun))
	}
	if ctx.Err() != nil {
		fmt.Println("\ninterrupted: what follows is incomplete")
	}
	return report(os.Stdout, results, time.Since(began)) && ctx.Err() == nil, nil
}

// groups are the checks by the name of their make target, in order.
func groups() map[string][]step {
	all := map[string][]step{"verify": verify(), "unit": unit(), "vm": virtualMachine(), "e2e": endToEnd()}
	for name, steps := range all {
		for i := range steps {
			steps[i].group = name
		}
	}
	return all
}

func verify() []step {
	return []step{
		{name: "formatting", do: formatted},
		{name: "no path of anybody's machine", do: noLocalPaths},
		{name: "modules", do: modules},
		{name: "generated files", do: generated},
		{name: "chart README", argv: []string{"go", "run", "./hack/chartdoc", "-check"}},
		{name: "chart lint", argv: tool("helm", "lint", "--strict", "--quiet", "deployments/helm/dovetail")},
		{name: "lint", argv: tool("golangci-lint", "run")},
		{name: "lint test/cluster", argv: tool("golangci-lint", "run", "-c", "../../.golangci.yaml"), dir: "test/cluster", needs: "test/cluster/go.mod"},
		{name: "imports, sleeps", argv: goTest("./test/archtest/..."), tests: true, needs: "test/archtest"},
		{name: "rendered chart", argv: goTest("./test/chart/..."), tests: true, needs: "test/chart"},
	}
}

func unit() []step {
	return []step{
		{name: "pure packages, with the race detector", packages: pure, argv: goTest("-race", "-timeout", "10m"), tests: true},
		{name: "the other packages", packages: impure, argv: goTest("-timeout", "10m"), tests: true},
		{name: "cluster launcher", argv: goTest("-timeout", "3m", ".", "./internal/...", "./modules/..."), dir: "test/cluster", tests: true, needs: "test/cluster/go.mod"},
	}
}

func virtualMachine() []step {
	return []step{
		{name: "a kernel with RDMA and cgroup version 2", argv: []string{"bin/vm", "-json"}, tests: true, each: true, lacking: 3, needs: "test/vm"},
	}
}

func endToEnd() []step {
	build := &step{name: "cluster build", argv: []string{makeCommand(), "--no-print-directory", "cluster-build"}, needs: "test/cluster/go.mod"}
	return []step{
		{name: "images and simulator", argv: []string{makeCommand(), "--no-print-directory", "cluster-images"}, needs: "test/e2e", ahead: build},
		{name: "cluster build", needs: "test/e2e", ahead: build, wait: true},
		{name: "Dovetail on a cluster", argv: goTest("-count=1", "-timeout", "20m", "./test/e2e", "-args", "-cluster", absolute("bin/cluster")), tests: true, each: true, needs: "test/e2e"},
		{name: "the cluster itself", argv: slices.Concat([]string{"env", "DOVETAIL_CLUSTER_TEST=1"}, goTest("-count=1", "-timeout", "10m", "./integration")), dir: "test/cluster", tests: true, each: true, needs: "test/cluster/integration"},
	}
}

// absolute is a path of the checkout, for programs that run in another folder.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

func goTest(args ...string) []string {
	return slices.Concat([]string{"go", "test", "-json"}, args)
}

func tool(name string, args ...string) []string {
	return slices.Concat([]string{toolPrefix + name}, args)
}

func makeCommand() string {
	if m := os.Getenv("MAKE"); m != "" && !strings.Contains(m, " ") {
		return m
	}
	return "make"
}
