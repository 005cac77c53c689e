package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// folders of one driver, as the kubelet and the runtime have them.
type folders struct {
	plugin   string // on disk
	registry string
	cdi      string // in memory, as /run is on a node
}

func (b *bench) folders(name string) (folders, error) {
	f := folders{
		plugin:   filepath.Join(b.disk, name),
		registry: filepath.Join(b.memory, name, "registry"),
		cdi:      filepath.Join(b.memory, name, "cdi"),
	}
	for _, dir := range []string{f.plugin, f.registry, f.cdi} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return f, err
		}
	}
	return f, nil
}

// startFloor starts the smallest driver there is, and registers it.
func (b *bench) startFloor(ctx context.Context) (*program, error) {
	f, err := b.folders("floor")
	if err != nil {
		return nil, err
	}
	p, err := start(filepath.Join(b.disk, "floor.log"), b.floor,
		"--kubeconfig", b.kubeconfig, "--plugin-dir", f.plugin, "--registry-dir", f.registry)
	if err != nil {
		return nil, err
	}
	if err := p.register(ctx, f.registry); err != nil {
		return nil, join(err, p.stop())
	}
	return p, nil
}

// agent is a dovetail-node on a simulated machine of its own.
type agent struct {
	*program
	folders
	machine *simulator.Machine
	address string // of its metrics
}

// startAgent starts a dovetail-node with more flags. It is not registered yet.
func (b *bench) startAgent(name string, machine *simulator.Machine, flags ...string) (*agent, error) {
	f, err := b.folders(name)
	if err != nil {
		return nil, err
	}
	a := &agent{folders: f, machine: machine}
	if a.address, err = freeAddress(); err != nil {
		return nil, err
	}
	a.program, err = start(filepath.Join(b.disk, name+".log"), slices.Concat([]string{
		b.node, "run", "--kubeconfig", b.kubeconfig, "--node-name", node, "--http-address", a.address,
		"--plugin-dir", f.plugin, "--registry-dir", f.registry, "--cdi-dir", f.cdi, "--cdi-hook", b.hook, "--hook", b.hook,
	}, rootFlags(machine.Root()), flags)...)
	return a, err
}

func rootFlags(root string) []string {
	return []string{"--driver-root", root, "--sysfs-root", filepath.Join(root, "sys"), "--proc-root", filepath.Join(root, "proc")}
}

// serveAgent starts a dovetail-node and registers it.
func (b *bench) serveAgent(ctx context.Context, name string, machine *simulator.Machine, flags ...string) (*agent, error) {
	a, err := b.startAgent(name, machine, flags...)
	if err != nil {
		return nil, err
	}
	if err := a.register(ctx, a.registry); err != nil {
		return nil, join(err, a.stop())
	}
	return a, nil
}

// freeAddress is one on which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
