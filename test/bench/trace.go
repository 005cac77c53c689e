package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

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
	case strings.Contains(line, "rename") && strings.Contains(line, filepath.Join(t.agent.plugin, "removed")):
		// out of the way, to be removed
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
