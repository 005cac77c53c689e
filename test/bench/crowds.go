package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/dovetail-dra/dovetail/pkg/simulator/mps"
)

// perServer is how many clients an MPS server has at most.
const perServer = 48

// crowds has as many shares of one GPU arrive at once as it takes, and then as many of
// each. A control daemon that was started twice is an error.
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
	if one.started != 1 || all.started != gpus {
		return t, footprint, fmt.Errorf("control daemons started: %d for one GPU, %d for %d", one.started, all.started, gpus)
	}
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
