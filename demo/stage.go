package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// stage is the cluster, and the machine that its nodes have.
type stage struct {
	*harness.Cluster
	nodes   []string
	machine string
}

func newStage(ctx context.Context, machine string) (*stage, error) {
	c, err := harness.Open()
	if err != nil {
		return nil, err
	}
	list, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	s := &stage{Cluster: c, machine: machine}
	for _, n := range list.Items {
		s.nodes = append(s.nodes, n.Name)
	}
	return s, nil
}

// setUp gives each node its machine and installs Dovetail, or brings up to date what is
// there.
func (s *stage) setUp(ctx context.Context) error {
	var offers []string
	steps := []struct {
		what string
		do   func() error
	}{
		{"the images go to each node", func() error { return s.LoadImages(ctx) }},
		{"it gets a simulated " + s.machine + ", down to NVML, sysfs and device nodes", s.each(func(node string) error { return s.equip(ctx, node) })},
		{"Helm installs Dovetail", func() error { return s.Install(ctx, nil) }},
		{"its agent starts", s.each(func(node string) error { _, err := s.WaitAgent(ctx, node); return err })},
		{"its controller starts", func() error { return s.WaitController(ctx) }},
		{"what the node has is in ResourceSlices", s.each(func(node string) error {
			offer, err := s.offer(ctx, node)
			offers = append(offers, offer)
			return err
		})},
	}
	for _, step := range steps {
		if err := timed(step.what, step.do); err != nil {
			return err
		}
	}
	for _, offer := range offers {
		fmt.Println("  " + offer)
	}
	return nil
}

// each does something for all nodes, one after another.
func (s *stage) each(do func(node string) error) func() error {
	return func() error {
		var err error
		for _, node := range s.nodes {
			err = errors.Join(err, do(node))
		}
		return err
	}
}

// equip gives a node its machine. A node that has another is rebooted for that.
func (s *stage) equip(ctx context.Context, node string) error {
	some, that, err := s.HasMachine(ctx, node, s.machine)
	switch {
	case err != nil:
		return err
	case some && !that:
		return s.ExchangeMachine(ctx, node, s.machine)
	}
	return s.CreateMachine(ctx, node, s.machine)
}

// offer waits for a node to offer what its machine has, and tells how much that is.
func (s *stage) offer(ctx context.Context, node string) (string, error) {
	gpus, nics, err := s.WaitMachine(ctx, node)
	return fmt.Sprintf("%s offers %d GPUs and %d NICs", node, gpus, nics), err
}

// become exchanges the machine for the one that a scenario wants.
func (s *stage) become(ctx context.Context, machine string) error {
	if machine == s.machine {
		return nil
	}
	description, err := machines.Description(machine)
	if err != nil {
		return err
	}
	paragraph("machine", append([]string{node + " is switched off, and becomes " + machine + ":"}, comment(string(description))...)...)
	began := time.Now()
	s.machine = machine
	if err := s.equip(ctx, node); err != nil {
		return err
	}
	offer, err := s.offer(ctx, node)
	if err != nil {
		return err
	}
	paragraph("then", fmt.Sprintf("%s, after %.1f s", offer, time.Since(began).Seconds()))
	paragraph("waits", "The controller was on that node, too, and its plug was pulled: until its Lease has run out, after",
		"some 15 s, no other process may do its work.")
	return nil
}

// timed does one part of the installation and tells how long it took.
func timed(what string, do func() error) error {
	fmt.Printf("  %s…", what)
	began := time.Now()
	if err := do(); err != nil {
		fmt.Println(" failed")
		return err
	}
	fmt.Printf(" %.1f s\n", time.Since(began).Seconds())
	return nil
}
