package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/test/bench/kubelet"
)

const long = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","sharing":{"timeSlicing":{"interval":"Long"}}}`

// shares measures claims of shares: what the first and further ones of a GPU cost, many
// at once, and dovetail-mps itself; and the same where MPS has namespaces.
func (b *bench) shares(ctx context.Context) (tables []table, err error) {
	older, err := b.machine("dgx-h100")
	if err != nil {
		return nil, err
	}
	newer, err := b.newerDGX()
	if err != nil {
		return nil, err
	}
	if tables, err = b.sharesOn(ctx, older, 2); err != nil {
		return nil, err
	}
	more, err := b.sharesOn(ctx, newer, 3)
	if err != nil {
		return nil, fmt.Errorf("MPS protocol 3: %w", err)
	}
	for i := range more {
		more[i].title += ", MPS protocol 3"
	}
	more[0].made = "The same run, with a driver of branch 615. A further share is a namespace of its GPU's MPS server, for which " +
		"`nvidia-cuda-mps-control` runs three times, and once more for its release (decision 15)."
	more[1].made = "The same run and driver. The runs for the namespaces of one GPU take turns."
	return append(tables, more[:2]...), nil // the last one is dovetail-mps's memory again
}

// sharesOn measures shares of a machine's GPUs.
func (b *bench) sharesOn(ctx context.Context, m *simulator.Machine, protocol int) (tables []table, err error) {
	d, err := b.startMPS(m)
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, d.stop()) }()
	a, err := b.publishing(ctx, fmt.Sprintf("shares-%d", protocol), m, d.socket()...)
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, a.stop()) }()
	cost, err := b.shareCost(ctx, a, d, protocol)
	if err != nil {
		return nil, err
	}
	crowds, footprint, err := b.crowds(ctx, a, d)
	return []table{cost, crowds, footprint}, err
}

// shared names the device of which claims have shares, or time slices, of the i-th GPU.
func (b *bench) shared(kind string, i int) string {
	return kind + strings.TrimPrefix(b.devices[i], "gpu")
}

// shareCost measures claims of shares in turn with those of a whole GPU. Intervals are the
// same with each protocol of MPS.
func (b *bench) shareCost(ctx context.Context, a *agent, d *mpsd, protocol int) (t table, err error) {
	further := b.sharesOf("further share", "", b.shared("mps", 1))
	furtherInterval := b.sharesOf("further interval", long, b.shared("timeslice", 3))
	kinds := []kind{
		b.claimsOf("whole GPU", "", b.devices[gpus-1]),
		b.sharesOf("first share of a GPU", "", b.shared("mps", 0)),
		further,
	}
	first := []kind{further}
	if protocol == 2 {
		kinds = append(kinds, b.sharesOf("first interval of a GPU", long, b.shared("timeslice", 2)), furtherInterval)
		first = append(first, furtherInterval)
	}
	var held []*kubelet.Claim
	for _, k := range first { // whoever came first
		claim, err := k.create(ctx, 1)
		if err != nil {
			return t, err
		}
		held = append(held, claim...)
	}
	if _, err := inTurn(ctx, a.driver.Prepare, held); err != nil {
		return t, err
	}
	if protocol == 2 {
		for _, k := range first {
			if err := startNothing(ctx, a, d, k); err != nil {
				return t, err
			}
		}
	}
	if err := b.inTurns(ctx, a, kinds, func() error { return nil }); err != nil {
		return t, err
	}
	if _, err := inTurn(ctx, a.driver.Unprepare, held); err != nil {
		return t, err
	}
	t = costTable(kinds)
	t.title = "Shares of a GPU"
	t.made = "`bin/bench -only shares`: " + t.made + " dovetail-mps runs programs that stand in for NVIDIA's, which take longer: a first share sets the GPU's " +
		"compute mode and starts a control daemon, and its release ends that; an interval of time slices is set and put back by `nvidia-smi`. " +
		"Further ones do neither: should one start any process, the benchmark fails."
	return t, nil
}

// startNothing prepares and releases a few claims, for which neither the agent nor
// dovetail-mps may start a process.
func startNothing(ctx context.Context, a *agent, d *mpsd, k kind) error {
	serve, err := d.serve()
	if err != nil {
		return err
	}
	made, err := k.create(ctx, costCalls)
	if err != nil {
		return err
	}
	before, err := childrenOf(a.pid(), serve)
	if err != nil {
		return err
	}
	for _, c := range made {
		if err := join(a.driver.Prepare(ctx, c), a.driver.Unprepare(ctx, c)); err != nil {
			return err
		}
	}
	after, err := childrenOf(a.pid(), serve)
	if err == nil && !slices.Equal(after, before) {
		err = fmt.Errorf("%s: a process was started for it, and none is to be (page faults of what agent and dovetail-mps started: %v, before %v)", k.name, after, before)
	}
	return err
}
