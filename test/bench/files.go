package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/test/bench/kubelet"
)

// tracedCalls is how many claims are prepared and released under strace.
const tracedCalls = 20

// files counts what a claim writes, and the processes that it starts, by the
// kernel's own account.
func (b *bench) files(ctx context.Context) (tables []table, err error) {
	t := table{
		title: "Files written and processes started, a claim",
		made: fmt.Sprintf("`bin/bench -only files`: strace of the agent during %d calls. A durable write is fsynced, and so is its folder after the rename; "+
			"what else is written is made again after a reboot, and never fsynced; the file of the metadata is written as it is made, the others beside their place. The NVIDIA driver made 2 fsync and 3 renames a prepare. "+
			"A partition's record is written before its three steps and after each, and before they are undone; a share's has two steps, three "+
			"with MPS protocol 3. What dovetail-mps writes and starts is counted, too, and what its stand-ins for NVIDIA's programs start: "+
			"a server, and with the first one a process of Go's.", tracedCalls),
		columns: []string{"Call", "Durable writes", "Target", "fsync of folders", "CDI specifications", "CDI specifications of metadata", "Other files", "Processes", "Target"},
	}
	if strace, _ := exec.LookPath("strace"); strace == "" {
		t.add("not measured: strace is not installed", "", "", "", "", "", "", "", "")
		return []table{t}, nil
	}
	older, err := b.machine("dgx-h100")
	if err != nil {
		return nil, err
	}
	newer, err := b.newerDGX()
	if err != nil {
		return nil, err
	}
	if err := b.tracedOn(ctx, &t, older, func() ([]tracedKind, error) {
		slices, err := b.slices(ctx)
		if err != nil {
			return nil, err
		}
		partitions, err := smallestOf(slices)
		if err != nil {
			return nil, err
		}
		return []tracedKind{
			{b.claimsOf("whole GPU", "", b.devices[0]), "≤ 2", "0"},
			{b.claimsOf("with a compute mode", exclusive, b.devices[0]), "≤ 2", "0"},
			{b.claimsOf("partition", "", partitions[0][0]), "", "0"},
			{b.sharesOf("first share of a GPU", "", b.shared("mps", 0)), "", ""},
			{b.sharesOf("further share", "", b.shared("mps", 1)), "", "0"},
		}, nil
	}); err != nil {
		return nil, err
	}
	err = b.tracedOn(ctx, &t, newer, func() ([]tracedKind, error) {
		return []tracedKind{
			{b.sharesOf("first share of a GPU, MPS protocol 3", "", b.shared("mps", 0)), "", ""},
			{b.sharesOf("further share, MPS protocol 3", "", b.shared("mps", 1)), "", ""},
		}, nil
	})
	return []table{t}, err
}

// tracedKind is a kind of claim, with what it may write and start at most, in words.
type tracedKind struct {
	kind
	writes, processes string
}

// tracedOn adds rows for claims of a machine's devices, of which the last are shares of a
// GPU that has one already.
func (b *bench) tracedOn(ctx context.Context, t *table, m *simulator.Machine, kindsOf func() ([]tracedKind, error)) (err error) {
	d, err := b.startMPS(m)
	if err != nil {
		return err
	}
	defer func() { err = join(err, d.stop()) }()
	a, err := b.publishing(ctx, "traced-"+filepath.Base(m.Root()), m, d.socket()...)
	if err != nil {
		return err
	}
	defer func() { err = join(err, a.stop()) }()
	serve, err := d.serve()
	if err != nil {
		return err
	}
	kinds, err := kindsOf()
	if err != nil {
		return err
	}
	others, err := kinds[len(kinds)-1].create(ctx, 1)
	if err != nil {
		return err
	}
	if err := a.driver.Prepare(ctx, others[0]); err != nil {
		return err
	}
	for _, k := range kinds {
		made, err := k.create(ctx, tracedCalls)
		if err != nil {
			return err
		}
		preparing, releasing, err := b.traced(ctx, a, serve, made)
		if err != nil {
			return err
		}
		preparing.row(t, "prepare, "+k.name, k.writes, k.processes)
		releasing.row(t, "release, "+k.name, k.writes, k.processes)
	}
	return a.driver.Unprepare(ctx, others[0])
}

// traced prepares and releases claims one at a time. serve is dovetail-mps.
func (b *bench) traced(ctx context.Context, a *agent, serve int, made []*kubelet.Claim) (preparing, releasing tally, err error) {
	for _, c := range made {
		trace, err := b.startTrace(a, serve)
		if err != nil {
			return preparing, releasing, err
		}
		if err := join(a.driver.Prepare(ctx, c), trace.stop(&preparing)); err != nil {
			return preparing, releasing, err
		}
		if trace, err = b.startTrace(a, serve); err != nil {
			return preparing, releasing, err
		}
		if err := join(a.driver.Unprepare(ctx, c), trace.stop(&releasing)); err != nil {
			return preparing, releasing, err
		}
	}
	return preparing, releasing, nil
}
