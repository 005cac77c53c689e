package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

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
			"what else is written is made again after a reboot, and never fsynced. The NVIDIA driver made 2 fsync and 3 renames a prepare. "+
			"A partition's record is written before its three steps and after each, and before they are undone; a share's has two steps. "+
			"What dovetail-mps writes and starts is counted, too.", tracedCalls),
		columns: []string{"Call", "Durable writes", "Target", "fsync of folders", "CDI specifications", "Metadata (file and CDI)", "Other files", "Processes", "Target"},
	}
	if _, err := exec.LookPath("strace"); err != nil {
		t.add("not measured: strace is not installed", "", "", "", "", "", "", "", "")
		return []table{t}, nil
	}
	m, err := b.machine("dgx-h100")
	if err != nil {
		return nil, err
	}
	d, err := b.startMPS(m)
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, d.stop()) }()
	a, err := b.dgx(ctx, "traced", d.socket()...)
	if err != nil {
		return nil, err
	}
	defer func() { err = join(err, a.stop()) }()
	serve, err := d.serve()
	if err != nil {
		return nil, err
	}
	slices, err := b.slices(ctx)
	if err != nil {
		return nil, err
	}
	partitions, err := smallestOf(slices)
	if err != nil {
		return nil, err
	}
	further := b.sharesOf("further share", "", b.shared("mps", 1))
	others, err := further.create(ctx, 1)
	if err != nil {
		return nil, err
	}
	if err := a.driver.Prepare(ctx, others[0]); err != nil {
		return nil, err
	}
	for _, row := range []struct {
		kind
		writes, processes string // targets
	}{
		{b.claimsOf("whole GPU", "", b.devices[0]), "≤ 2", "0"},
		{b.claimsOf("with a compute mode", exclusive, b.devices[0]), "≤ 2", "0"},
		{b.claimsOf("partition", "", partitions[0][0]), "", "0"},
		{b.sharesOf("first share of a GPU", "", b.shared("mps", 0)), "", ""},
		{further, "", "0"},
	} {
		made, err := row.create(ctx, tracedCalls)
		if err != nil {
			return nil, err
		}
		preparing, releasing, err := b.traced(ctx, a, serve, made)
		if err != nil {
			return nil, err
		}
		preparing.row(&t, "prepare, "+row.name, row.writes, row.processes)
		releasing.row(&t, "release, "+row.name, row.writes, row.processes)
	}
	return []table{t}, a.driver.Unprepare(ctx, others[0])
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

// tally counts system calls.
type tally struct {
	calls                                               int
	durable, folders, specs, metadata, other, processes int
}

func (n *tally) row(t *table, name, writes, processes string) {
	each := func(count int) string { return fmt.Sprintf("%.3g", float64(count)/float64(n.calls)) }
	t.add(name, each(n.durable), writes, each(n.folders), each(n.specs), each(n.metadata), each(n.other), each(n.processes), processes)
}

// trace is a strace of an agent, and of dovetail-mps.
type trace struct {
	agent *agent
	cmd   *exec.Cmd
	out   string
}

const tracedSyscalls = "fsync,fdatasync,rename,renameat,renameat2,clone,clone3,fork,vfork"

// startTrace returns once both are traced.
func (b *bench) startTrace(a *agent, serve int) (*trace, error) {
	t := &trace{agent: a, out: filepath.Join(b.memory, "trace")}
	t.cmd = exec.Command("strace", "-f", "-y", "-s", "1", "-e", "trace="+tracedSyscalls, "-o", t.out, "-p", fmt.Sprint(a.pid()), "-p", fmt.Sprint(serve))
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	says, err := t.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(says)
	for range 2 {
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, "attached") {
			_ = t.cmd.Process.Kill()
			return nil, fmt.Errorf("strace: %w %s", join(err, t.cmd.Wait()), line)
		}
	}
	return t, nil
}

// stop ends the trace and adds up what it saw.
func (t *trace) stop(n *tally) error {
	if err := t.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	_ = t.cmd.Wait() // ends by the signal
	content, err := os.ReadFile(t.out)
	if err != nil {
		return err
	}
	n.calls++
	for line := range strings.SplitSeq(string(content), "\n") {
		if !strings.Contains(line, "resumed>") { // only the start of each call
			t.count(line, n)
		}
	}
	return nil
}

func (t *trace) count(line string, n *tally) {
	records := filepath.Join(t.agent.plugin, "claims")
	switch {
	case strings.Contains(line, "sync(") && strings.Contains(line, "<"+records+">"):
		n.folders++
	case strings.Contains(line, "sync("):
		n.durable++
	case strings.Contains(line, "rename") && strings.Contains(line, records):
		// counted by its fsync
	case strings.Contains(line, "rename") && strings.Contains(line, t.agent.machine.Root()):
		// the simulated GPU keeps its compute mode in a file
	case strings.Contains(line, "rename") && strings.Contains(line, "metadata"):
		n.metadata++
	case strings.Contains(line, "rename") && strings.Contains(line, t.agent.cdi):
		n.specs++
	case strings.Contains(line, "rename"):
		n.other++
	case strings.Contains(line, "fork("),
		strings.Contains(line, "clone") && !strings.Contains(line, "CLONE_THREAD"):
		n.processes++
	}
}
