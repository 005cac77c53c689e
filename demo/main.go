// Command demo shows Dovetail at work: it brings up a real Kubernetes cluster with
// a simulated DGX H100, installs Dovetail with its chart, and tries each scenario
// in demo/scenarios. For each it tells what was asked for, what was given, and what
// the Pod saw.
//
//	go run ./demo          # the cluster goes away at the end
//	go run ./demo -keep    # it stays, with the last scenario
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dovetail-dra/dovetail/test/harness"
)

const (
	node    = "node-1"
	machine = "dgx-h100"
	gpus    = 8
)

func main() {
	keep := flag.Bool("keep", false, "leave the cluster up")
	launcher := flag.String("cluster", "bin/cluster", "test/cluster's program, which make builds")
	name := flag.String("name", cmp.Or(os.Getenv("DOVETAIL_CLUSTER_NAME"), "demo"), "name of the cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	code, err := run(ctx, *launcher, *name, *keep)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, launcher, name string, keep bool) (int, error) {
	path, err := filepath.Abs(launcher)
	if err != nil {
		return 1, err
	}
	if harness.Inside() {
		err = show(ctx, launcher, name, keep)
		if errors.Is(err, context.Canceled) {
			return 130, errors.New("interrupted")
		}
		if err != nil {
			return 1, err
		}
		return 0, nil
	}
	fmt.Println("Dovetail on a real Kubernetes cluster, with simulated GPUs and NICs")
	fmt.Println()
	b := harness.Bring{
		Launcher: harness.Launcher{Path: path, Name: name, Out: indented{os.Stdout}},
		Nodes:    1,
		Keep:     func(int) bool { return keep },
	}
	return b.Around(ctx)
}

// show installs Dovetail and goes through the scenarios.
func show(ctx context.Context, launcher, name string, keep bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	c, err := harness.Open()
	if err != nil {
		return err
	}
	if err := install(ctx, c); err != nil {
		return err
	}
	scenarios, err := read(filepath.Join(c.Root, "demo", "scenarios"))
	if err != nil {
		return err
	}
	var held []holding
	for i, s := range scenarios {
		stay := keep && i == len(scenarios)-1
		h, err := s.play(ctx, c, stay)
		if err != nil {
			return fmt.Errorf("scenario %s: %w\n%s", s.file, err, c.Explain(context.WithoutCancel(ctx), s.namespace(), node))
		}
		held = append(held, h...)
	}
	table(held)
	if keep {
		lookAround(launcher, name, held[len(held)-1])
	}
	return nil
}

// step does one part of the installation and tells how long it took.
func step(what string, do func() error) error {
	fmt.Printf("  %s…", what)
	began := time.Now()
	if err := do(); err != nil {
		fmt.Println(" failed")
		return err
	}
	fmt.Printf(" %.1f s\n", time.Since(began).Seconds())
	return nil
}

func install(ctx context.Context, c *harness.Cluster) error {
	steps := []struct {
		what string
		do   func() error
	}{
		{"the images go to the node", func() error { return c.LoadImages(ctx) }},
		{"the node gets a simulated " + machine + ", down to NVML, sysfs and device nodes",
			func() error { return c.CreateMachine(ctx, node, machine) }},
		{"Helm installs Dovetail", func() error { return c.Install(ctx, nil) }},
		{"its agent starts, and its controller", func() error {
			_, err := c.WaitAgent(ctx, node)
			return errors.Join(err, c.WaitController(ctx))
		}},
		{fmt.Sprintf("the node offers its %d GPUs, and the NICs next to them, in ResourceSlices", gpus),
			func() error { _, err := c.WaitGPUs(ctx, node, gpus); return err }},
	}
	for _, s := range steps {
		if err := step(s.what, s.do); err != nil {
			return err
		}
	}
	return nil
}

// lookAround tells what can be done with a cluster that stays.
func lookAround(launcher, name string, last holding) {
	fmt.Printf(`
The cluster is still up. Look around:
  %[1]s --name %[2]s kubectl get pods,resourceclaims -A
  %[1]s --name %[2]s kubectl get resourceslices -o yaml
  %[1]s --name %[2]s kubectl -n %[4]s logs %[5]s
  %[1]s --name %[2]s kubectl describe node %[3]s
Remove it:
  %[1]s --name %[2]s down
`, launcher, name, node, last.namespace, last.pod)
}
