package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/control"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/node"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/poll"
)

// The operations of a cluster.
const (
	OpState     = "state"
	OpPause     = "pause-apiserver"
	OpResume    = "resume-apiserver"
	OpNodeReady = "node-ready" // returns when Node is Ready, its kubelet heard after Since
)

// waitReady is how long a node may take to be Ready again.
const waitReady = 2 * time.Minute

func (s *Supervisor) handle(req control.Request) (control.Answer, error) {
	var ans control.Answer
	switch req.Op {
	case OpState:
		ans.Daemon = s.states(s.cluster.Nodes)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		nodes, err := s.nodes(ctx)
		if err != nil { // with the API server away, the rest is worth knowing
			nodes = nil
		}
		ans.Nodes = nodes
		return ans, nil
	case OpPause:
		return ans, s.pause()
	case OpResume:
		return ans, s.resume()
	case OpNodeReady:
		ctx, cancel := context.WithTimeout(context.Background(), waitReady)
		defer cancel()
		return ans, s.wait(ctx, req.Node+" to be Ready", []string{req.Node}, func() error { return s.nodeReady(ctx, req.Node, req.Since) })
	}
	return ans, fmt.Errorf("unknown operation %q of a cluster", req.Op)
}

func (s *Supervisor) pause() error {
	errs := []error{s.apiserver.Kill()}
	for _, d := range s.controllers {
		errs = append(errs, d.Kill())
	}
	return errors.Join(errs...)
}

func (s *Supervisor) resume() error {
	if err := s.apiserver.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := poll.Until(ctx, 50*time.Millisecond, func() error { return s.api.Readyz(ctx) }); err != nil {
		return err
	}
	for _, d := range s.controllers {
		if err := d.Start(); err != nil {
			return err
		}
	}
	return nil
}

// states asks the programs of the control plane and of some nodes how they are.
func (s *Supervisor) states(nodes []string) []control.Daemon {
	var out []control.Daemon
	for _, d := range s.daemons {
		out = append(out, control.Daemon{Name: d.Name, State: d.State()})
	}
	for _, n := range nodes {
		ans, err := control.Call(s.cluster.NodeControl(n), control.Request{Op: node.OpState})
		if err != nil {
			out = append(out, control.Daemon{Name: n, State: err.Error()})
		}
		out = append(out, ans.Daemon...)
	}
	return out
}
