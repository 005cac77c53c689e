package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/cgroup"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/control"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/ns"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/spawn"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

func execCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec NODE COMMAND…",
		Short: "Run a command on a node",
		Long: `Run a command on a node: in its mount, network and PID namespaces and its cgroup.
A reboot of the node ends it. The exit code is the command's.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			c, _, err := o.running()
			if err != nil {
				return err
			}
			return onNode(c, args[0], args[1:], os.Stdin, os.Stdout, os.Stderr)
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// onNode runs a command on a node. The goroutine that calls it is on that node
// from then on: call it last, or in a goroutine of its own.
func onNode(c *state.Cluster, node string, argv []string, in, out, errOut *os.File) error {
	if _, err := c.Index(node); err != nil {
		return err
	}
	pid, err := control.PID(c.NodeControl(node))
	if err != nil {
		return err
	}
	if err := ns.Enter(pid, ns.Node...); err != nil {
		return fmt.Errorf("entering %s: %w", node, err)
	}
	cmd := spawn.Command(cgroup.System(c.NodeGroup(node)), spawn.Tied, argv...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errOut
	cmd.Dir = "/"
	if err := spawn.Start(cmd); err != nil {
		fmt.Fprintf(os.Stderr, "cluster: on %s: %v\n", node, err)
		return exitCode(spawn.ExitNotFound)
	}
	stop := forward(cmd.Process)
	defer stop()
	return asExitCode(cmd.Wait())
}

// forward passes on the signals that a terminal would not send to both.
func forward(p *os.Process) (stop func()) {
	sigs := make(chan os.Signal, 4)
	signal.Notify(sigs, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range sigs {
			_ = p.Signal(s)
		}
	}()
	return func() { signal.Stop(sigs) }
}

// asExitCode turns a command's end into ours, as a shell would.
func asExitCode(err error) error {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		return err
	}
	if s, ok := e.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return exitCode(128 + int(s.Signal()))
	}
	return exitCode(e.ExitCode())
}

func kubectlCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl ARGUMENTS…",
		Short: "Run the cluster's kubectl as admin",
		Long: `Run the cluster's kubectl as admin, with kubectl's own exit code. All arguments
are kubectl's: put --name and --state-dir before "kubectl".`,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			c, run, err := o.running()
			if err != nil {
				return err
			}
			return become(c, run, append([]string{filepath.Join(c.Bin, "kubectl")}, args...))
		},
	}
}

func runCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run COMMAND…",
		Short: "Run a command of this machine that can reach the API server",
		Long: `Run a command of this machine in the control plane's network, with KUBECONFIG
set. Files and processes are the machine's; the machine's own network is out of
reach. DOVETAIL_CLUSTER is the launcher and DOVETAIL_CLUSTER_NAME the cluster, so
that the command can call the launcher. The exit code is the command's.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, run, err := o.running()
			if err != nil {
				return err
			}
			path, err := exec.LookPath(args[0])
			if err != nil {
				fmt.Fprintln(os.Stderr, "cluster:", err)
				return exitCode(spawn.ExitNotFound)
			}
			return become(c, run, append([]string{path}, args[1:]...))
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// become replaces the launcher by a command in the control plane's network.
func become(c *state.Cluster, run state.Run, argv []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := environment(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), envLauncher+"="+self, envName+"="+c.Name)
	if err := ns.Enter(run.PID, ns.Net); err != nil {
		return err
	}
	signal.Reset()
	return fmt.Errorf("%s: %w", argv[0], syscall.Exec(argv[0], argv, env))
}

// environment is env with some variables set. Of a variable that stands there twice,
// programs take one or the other.
func environment(env []string, set ...string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	return append(out, set...)
}
