// Package controlplane is the cluster's supervisor: it starts the control plane
// and the nodes, in the order in which they can do their work, and answers the
// launcher.
package controlplane

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/cgroup"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/config"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/control"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/kubeapi"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/network"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/poll"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/spawn"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// Ready is the last line of progress of a cluster that is up; Failed begins the
// last line of one that will not be.
const (
	Ready  = "ready"
	Failed = "failed: "
)

// patience is how long a step of the start may take on a slow machine.
const patience = 3 * time.Minute

// Supervisor runs one cluster.
type Supervisor struct {
	cluster   *state.Cluster
	api       *kubeapi.Client
	apiserver *spawn.Daemon
	// controllers end and start with the API server, as where they are elected and
	// lose their lease.
	controllers []*spawn.Daemon
	daemons     []*spawn.Daemon
	died        chan error // a node's process ended: the cluster is broken
}

// Main starts the cluster, reports on progress, and serves until something that
// cannot be restarted ends.
func Main(c *state.Cluster, progress io.WriteCloser) error {
	s := &Supervisor{cluster: c, died: make(chan error, len(c.Nodes))}
	say := func(format string, a ...any) { fmt.Fprintf(progress, format+"\n", a...) }
	if err := s.start(say); err != nil {
		say("%s%v", Failed, err)
		return err
	}
	l, err := control.Listen(c.Control())
	if err != nil {
		say("%s%v", Failed, err)
		return err
	}
	say(Ready)
	progress.Close()
	go func() { s.died <- control.Serve(l, s.handle) }()
	return <-s.died
}

func (s *Supervisor) start(say func(string, ...any)) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if s.api, err = kubeapi.New(s.cluster.PKI()); err != nil {
		return err
	}
	if err := network.ControlPlane(); err != nil {
		return err
	}
	if err := config.WriteScheduler(s.cluster); err != nil {
		return err
	}
	if _, err := s.daemon("etcd", config.Etcd(s.cluster)); err != nil {
		return err
	}
	if s.apiserver, err = s.daemon("kube-apiserver", config.APIServer(s.cluster)); err != nil {
		return err
	}
	booted := make(chan error, len(s.cluster.Nodes)) // nodes come up beside the API server
	for _, n := range s.cluster.Nodes {
		go func() { booted <- s.bootNode(n) }()
	}
	if err := s.apiserverReady(ctx); err != nil {
		return err
	}
	say("API server ready")
	for name, argv := range map[string][]string{
		"kube-controller-manager": config.ControllerManager(s.cluster),
		"kube-scheduler":          config.Scheduler(s.cluster),
	} {
		d, err := s.daemon(name, argv)
		if err != nil {
			return err
		}
		s.controllers = append(s.controllers, d)
	}
	for range s.cluster.Nodes {
		if err := <-booted; err != nil {
			return err
		}
	}
	say("containerd ready on %d node(s)", len(s.cluster.Nodes))
	for _, n := range s.cluster.Nodes {
		if err := s.startKubelet(n); err != nil {
			return err
		}
	}
	return s.settled(ctx, say)
}

// settled waits until Pods can run.
func (s *Supervisor) settled(ctx context.Context, say func(string, ...any)) error {
	for _, n := range s.cluster.Nodes {
		if err := s.wait(ctx, "node "+n+" to be Ready", s.cluster.Nodes, func() error { return s.nodeReady(ctx, n, time.Time{}) }); err != nil {
			return err
		}
		say("%s Ready", n)
	}
	return s.wait(ctx, "the default service account", s.cluster.Nodes, func() error { return s.api.ServiceAccount(ctx, "default") })
}

// daemon starts one program of the control plane.
func (s *Supervisor) daemon(name string, argv []string) (*spawn.Daemon, error) {
	d := &spawn.Daemon{Name: name, Group: cgroup.System(s.cluster.Group()), Argv: argv, Log: s.cluster.Log(name)}
	s.daemons = append(s.daemons, d)
	return d, d.Start()
}

func (s *Supervisor) apiserverReady(ctx context.Context) error {
	return s.wait(ctx, "the API server", nil, func() error { return s.api.Readyz(ctx) })
}

// wait waits for the cluster to get somewhere, unless the control plane or a
// program of these nodes dies.
func (s *Supervisor) wait(ctx context.Context, what string, nodes []string, ask func() error) error {
	return poll.Until(ctx, 50*time.Millisecond, func() error {
		for _, d := range s.states(nodes) {
			if d.State != "running" {
				return poll.Stop(fmt.Errorf("%s %s; %s", d.Name, d.State, logHint(d.Name)))
			}
		}
		if err := ask(); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		return nil
	})
}

func logHint(component string) string { return "its log is " + component + ".log" }
