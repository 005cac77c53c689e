// Package spawn starts processes in a cgroup of the cluster.
//
// The launcher starts itself again as "__child GROUP COMMAND…"; the child joins
// the group and then becomes the command. So nothing of the command ever runs
// outside its group, on cgroup v1 as on v2.
package spawn

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/cgroup"
)

// Self is the launcher itself, whatever became of its file.
const Self = "/proc/self/exe"

// ChildCommand is the hidden subcommand that Child serves.
const ChildCommand = "__child"

// reportFD is where a child says why it could not become its command. It closes
// when the command starts.
const reportFD = 3

// ExitNotFound is the shell's exit code for a command that cannot be started.
const ExitNotFound = 127

// Bond says what becomes of a command when its parent ends.
type Bond string

// Go's own Pdeathsig does not do for a child in another PID namespace: it takes
// the parent that it cannot see for one that is dead.
const (
	Tied Bond = "tied" // the command is killed; the caller keeps its thread until then
	Free Bond = "free" // it lives on
)

// Command prepares argv to be started in group.
func Command(group string, bond Bond, argv ...string) *exec.Cmd {
	cmd := exec.Command(Self, append([]string{ChildCommand, group, string(bond)}, argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return cmd
}

// Start starts a command made by Command and returns once it runs.
func Start(cmd *exec.Cmd) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return err
	}
	var buf [1024]byte
	n, _ := r.Read(buf[:])
	if n > 0 {
		_ = cmd.Wait()
		return errors.New(strings.TrimSpace(string(buf[:n])))
	}
	return nil
}

// Run starts a command and waits for it.
func Run(cmd *exec.Cmd) error {
	if err := Start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// Child joins the group and becomes the command. It returns only on failure,
// with the exit code to use.
func Child(group string, bond Bond, argv []string) int {
	unix.CloseOnExec(reportFD)
	runtime.LockOSThread() // a bond is a thread's, and the thread that execs is kept
	if bond == Tied {
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil || orphaned() {
			return ExitNotFound
		}
	}
	err := become(group, argv)
	fmt.Fprintf(os.NewFile(reportFD, "report"), "%v\n", err)
	return ExitNotFound
}

// orphaned says whether the parent has ended already: then nobody reads reports.
// (Its process number would not tell: across PID namespaces it is 0 either way.)
func orphaned() bool {
	p := []unix.PollFd{{Fd: reportFD}}
	n, _ := unix.Poll(p, 0)
	return n > 0 && p[0].Revents&unix.POLLERR != 0
}

func become(group string, argv []string) error {
	tree, err := cgroup.Detect(cgroup.Root)
	if err != nil {
		return err
	}
	if err := tree.Join(group); err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("%s: %w", argv[0], errors.Unwrap(err))
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, os.Environ()))
}
