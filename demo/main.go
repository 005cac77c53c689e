// Command demo shows Dovetail at work: it brings up a real Kubernetes cluster with
// a simulated DGX H100, installs Dovetail with its chart, and tries each scenario
// in demo/scenarios. For each it tells what was asked for, what was given, and what
// the Pod saw. A scenario that wants another machine says so on top of its file.
//
//	go run ./demo                      # the cluster goes away at the end
//	go run ./demo -keep                # it stays, with the last scenario
//	go run ./demo -install mixed-rails # only installs, in a cluster that is up
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

	"k8s.io/client-go/rest"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/test/harness"
)

const (
	node    = "node-1"
	machine = "dgx-h100"
)

// options are the command's flags.
type options struct {
	launcher, name string
	keep           bool
	install        string // the machine
}

func main() {
	o := options{}
	flag.BoolVar(&o.keep, "keep", false, "leave the cluster up")
	flag.StringVar(&o.install, "install", "", "only install Dovetail, with that `machine` of demo/machines on each node, in a cluster that is up")
	flag.StringVar(&o.launcher, "cluster", "bin/cluster", "test/cluster's program, which make builds")
	flag.StringVar(&o.name, "name", os.Getenv(harness.EnvName), "name of the cluster (default demo, with -install "+harness.DefaultName+")")
	flag.Parse()
	o.name = cmp.Or(o.name, map[bool]string{true: harness.DefaultName, false: "demo"}[o.install != ""])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	code, err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	os.Exit(code)
}

func (o options) run(ctx context.Context) (int, error) {
	path, err := filepath.Abs(o.launcher)
	if err != nil {
		return 1, err
	}
	if harness.Inside() {
		err := o.inside(ctx)
		if errors.Is(err, context.Canceled) {
			return 130, errors.New("interrupted")
		}
		if err != nil {
			return 1, err
		}
		return 0, nil
	}
	l := harness.Launcher{Path: path, Name: o.name}
	if o.install != "" {
		if _, err := machines.Description(o.install); err != nil {
			return 1, err
		}
		return l.Within(ctx)
	}
	fmt.Println("Dovetail on a real Kubernetes cluster, with simulated GPUs and NICs")
	fmt.Println()
	l.Out = indented{os.Stdout}
	return harness.Bring{Launcher: l, Nodes: 1, Keep: func(int) bool { return o.keep }}.Around(ctx)
}

// inside is what is done in the cluster's network.
func (o options) inside(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	rest.SetDefaultWarningHandler(warnings{})
	s, err := newStage(ctx, cmp.Or(o.install, machine))
	if err != nil {
		return err
	}
	if err := s.setUp(ctx); err != nil {
		return err
	}
	if o.install != "" {
		o.tryIt()
		return nil
	}
	return o.show(ctx, s)
}

// show goes through the scenarios.
func (o options) show(ctx context.Context, s *stage) error {
	scenarios, err := read(filepath.Join(s.Root, "demo", "scenarios"))
	if err != nil {
		return err
	}
	var held []holding
	for i, scenario := range scenarios {
		stay := o.keep && i == len(scenarios)-1
		h, err := scenario.play(ctx, s, stay)
		if err != nil {
			return fmt.Errorf("scenario %s: %w\n%s", scenario.file, err, s.Explain(context.WithoutCancel(ctx), scenario.namespace(), node))
		}
		held = append(held, h...)
	}
	fmt.Println("\nWho held what, by scenario")
	table(os.Stdout, held)
	if o.keep {
		o.lookAround(held[len(held)-1])
	}
	return nil
}

// command is how the cluster's launcher is called.
func (o options) command() string {
	if o.name == harness.DefaultName {
		return o.launcher
	}
	return o.launcher + " --name " + o.name
}

// lookAround tells what can be done with a cluster that stays.
func (o options) lookAround(last holding) {
	fmt.Printf(`
The cluster is still up, with the last scenario on it. Look around:
  %[1]s kubectl get partitionclasses
  %[1]s kubectl get pods,resourceclaims -A
  %[1]s kubectl get resourceslices -o yaml
  %[1]s kubectl -n %[3]s logs %[4]s
  %[1]s kubectl describe node %[2]s
  %[1]s kubectl -n dovetail-system exec ds/dovetail-node -- dovetail-node inventory
Remove it:
  %[1]s down
`, o.command(), node, last.namespace, last.pod)
}

// tryIt tells what can be done with a cluster that has Dovetail.
func (o options) tryIt() {
	fmt.Printf(`
Claim something, and see what the Pod was given:
  %[1]s kubectl apply -f demo/scenarios/1-one-gpu.yaml
  %[1]s kubectl get pods,resourceclaims
  %[1]s kubectl logs train
Look at what the nodes offer:
  %[1]s kubectl get resourceslices
  %[1]s kubectl -n dovetail-system exec ds/dovetail-node -- dovetail-node inventory
Remove it all:
  %[1]s down
`, o.command())
}
