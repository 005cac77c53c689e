package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
	"github.com/dovetail-dra/dovetail/test/bench/kubelet"
)

const (
	// perServer is how many clients an MPS server has at most.
	perServer = 48
	long      = `{"apiVersion":"dovetail.dev/v1alpha1","kind":"GPUConfig","sharing":{"timeSlicing":{"interval":"Long"}}}`
)

// shares measures claims of shares: what the first and further ones of a GPU cost, many
// at once, and dovetail-mps itself.
func (b *bench) shares(ctx context.Context) (tables []table, err error) {
	m, err := b.machine("dgx-h100")
	if err != nil {
		return nil, err
	}
	d, err := b.startMPS(m)
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, d.stop()) }()
	a, err := b.dgx(ctx, "shares", d.socket()...)
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, a.stop()) }()
	cost, err := b.shareCost(ctx, a)
	if err != nil {
		return nil, err
	}
	crowds, footprint, err := b.crowds(ctx, a, d)
	if err != nil {
		return nil, err
	}
	return []table{cost, crowds, footprint}, nil
}

// shared names the device of which claims have shares, or time slices, of the i-th GPU.
func (b *bench) shared(kind string, i int) string {
	return kind + strings.TrimPrefix(b.devices[i], "gpu")
}

// shareCost measures claims of shares in turn with those of a whole GPU.
func (b *bench) shareCost(ctx context.Context, a *agent) (t table, err error) {
	kinds := []kind{
		b.claimsOf("whole GPU", "", b.devices[gpus-1]),
		b.sharesOf("first share of a GPU", "", b.shared("mps", 0)),
		b.sharesOf("further share", "", b.shared("mps", 1)),
		b.sharesOf("first interval of a GPU", long, b.shared("timeslice", 2)),
		b.sharesOf("further interval", long, b.shared("timeslice", 3)),
	}
	var held []*kubelet.Claim
	for _, k := range []kind{kinds[2], kinds[4]} { // whoever came first
		first, err := k.create(ctx, 1)
		if err != nil {
			return t, err
		}
		held = append(held, first...)
	}
	if _, err := inTurn(ctx, a.driver.Prepare, held); err != nil {
		return t, err
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
		"compute mode and starts a control daemon, and its release ends that; an interval of time slices is set and put back by `nvidia-smi`. Further ones do neither."
	return t, nil
}

// crowds has as many shares of one GPU arrive at once as it takes, and then as many of
// each.
func (b *bench) crowds(ctx context.Context, a *agent, d *mpsd) (t, footprint table, err error) {
	var devices []string
	for i := range gpus {
		devices = append(devices, b.shared("mps", i))
	}
	footprint = table{
		title:   "Memory of dovetail-mps",
		made:    "The same run, without NVIDIA's programs: the process that serves the agent, and the one that keeps it alive.",
		columns: []string{"When", "serve", "of which anonymous", "run", "of which anonymous"},
	}
	if err := d.addMemory(&footprint, "after the claims of the first table"); err != nil {
		return t, footprint, err
	}
	one, err := b.crowd(ctx, a, repeat(devices[:1], perServer), func() error { return nil })
	if err != nil {
		return t, footprint, err
	}
	all, err := b.crowd(ctx, a, repeat(devices, gpus*perServer), func() error {
		return d.addMemory(&footprint, fmt.Sprintf("with %d control daemons, %d shares", gpus, gpus*perServer))
	})
	if err != nil {
		return t, footprint, err
	}
	t = table{
		title: fmt.Sprintf("%d shares of a GPU at once", perServer),
		made: "The same run: all calls at once, from the first to the last to be answered, on GPUs of which nobody has a share yet. " +
			"What the GPUs have in common are the cores of the machine above.",
		columns: []string{"Claims", fmt.Sprintf("%d of one GPU", perServer), fmt.Sprintf("%d × %d of eight", gpus, perServer), "Ratio"},
	}
	t.add("prepare", seconds(one.prepare), seconds(all.prepare), ratio(all.prepare, one.prepare))
	t.add("release", seconds(one.unprepare), seconds(all.unprepare), ratio(all.unprepare, one.unprepare))
	t.add("control daemons started", strconv.Itoa(one.started), strconv.Itoa(all.started), "")
	return t, footprint, nil
}

// crowdSpans are a crowd's, with how many control daemons were started for it.
type crowdSpans struct {
	spans
	started int
}

// crowd prepares and releases a share of each device; between is called when all are
// prepared.
func (b *bench) crowd(ctx context.Context, a *agent, devices []string, between func() error) (s crowdSpans, err error) {
	made, err := b.claims.share(ctx, "", devices...)
	if err != nil {
		return s, err
	}
	before, err := a.machine.State()
	if err != nil {
		return s, err
	}
	if s.prepare, err = atOnce(ctx, a.driver.Prepare, made); err != nil {
		return s, err
	}
	after, err := a.machine.State()
	if err != nil {
		return s, err
	}
	s.started = after.Runs[mps.ControlName] - before.Runs[mps.ControlName]
	if err := between(); err != nil {
		return s, err
	}
	s.unprepare, err = atOnce(ctx, a.driver.Unprepare, made)
	return s, err
}

// addMemory adds what its two processes have.
func (d *mpsd) addMemory(t *table, when string) error {
	serve, err := d.serve()
	if err != nil {
		return err
	}
	row := []string{when}
	for _, pid := range []int{serve, d.pid()} {
		m, err := memoryOf(pid)
		if err != nil {
			return err
		}
		row = append(row, m.cells()...)
	}
	t.add(row...)
	return nil
}
