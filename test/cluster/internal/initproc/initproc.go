// Package initproc is the init of a cluster's PID namespace. When it ends, for
// whatever reason, the kernel ends every process of the cluster.
//
// It does three things: it sets the namespaces up, starts the supervisor, and
// reaps orphans. It ends when the supervisor ends, or when the launcher that
// started it goes away before the cluster is up.
package initproc

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/cgroup"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/mount"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/spawn"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// Command and SupervisorCommand are the hidden subcommands.
const (
	Command           = "__init"
	SupervisorCommand = "__supervise"
)

// The files that a launcher hands to init.
const (
	ProgressFD = 3 // init, and later the supervisor, write what they do here
	LeashFD    = 4 // closed without a byte: the launcher is gone
)

// Main runs init. It does not return while the cluster lives.
func Main(c *state.Cluster) error {
	unix.CloseOnExec(ProgressFD)
	unix.CloseOnExec(LeashFD)
	tree, err := cgroup.Detect(cgroup.Root)
	if err != nil {
		return err
	}
	if err := tree.Join(cgroup.System(c.Group())); err != nil {
		return err
	}
	if err := mount.Isolate(); err != nil {
		return err
	}
	if err := mount.Proc(); err != nil {
		return err
	}
	go leash()
	pid, err := supervisor(c)
	if err != nil {
		return err
	}
	// An init gets only those signals that it asks for.
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-end
		os.Exit(0)
	}()
	return reap(pid)
}

// leash ends the cluster if the launcher ends before it lets go.
func leash() {
	var b [1]byte
	n, _ := os.NewFile(LeashFD, "leash").Read(b[:])
	if n == 0 {
		fmt.Fprintln(os.Stderr, "init: the launcher ended before the cluster was up")
		os.Exit(1)
	}
}

// supervisor starts the supervisor without os/exec, whose Wait reap would rob.
func supervisor(c *state.Cluster) (int, error) {
	argv := []string{"dovetail-cluster", SupervisorCommand, "--name", c.Name, "--state-dir", c.Dir}
	pid, err := syscall.ForkExec(spawn.Self, argv, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2, ProgressFD},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("starting the supervisor: %w", err)
	}
	unix.Close(ProgressFD) // so that the launcher sees the supervisor's end
	return pid, nil
}

// reap waits for children until the supervisor has ended.
func reap(supervisor int) error {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("waiting for children: %w", err)
		case pid == supervisor:
			return fmt.Errorf("the supervisor ended (exit %d, signal %d)", status.ExitStatus(), status.Signal())
		}
	}
}
