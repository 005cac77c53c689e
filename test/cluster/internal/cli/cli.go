// Package cli is the launcher's command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/hostdirs"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// Environment variables, also set for commands that `run` starts.
const (
	envName     = "DOVETAIL_CLUSTER_NAME"
	envLauncher = "DOVETAIL_CLUSTER"
)

// options are the flags that all commands have.
type options struct{ name, stateDir string }

// exitCode is an error that only sets the exit code: all is said already.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the command line and returns the exit code.
func Main() int {
	if code, ok := child(os.Args); ok {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := root().ExecuteContext(ctx)
	var code exitCode
	switch {
	case errors.As(err, &code) && err.Error() == code.Error(): // one that is wrapped has more to say
		return int(code)
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "interrupted")
		return 130
	}
	fmt.Fprintln(os.Stderr, "cluster:", err)
	return 1
}

func root() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "A real Kubernetes cluster on this machine, for demos and tests",
		Long: `A real Kubernetes cluster on this machine, for demos and tests.

Everything runs in namespaces and cgroups of its own and is gone after "down".
Nodes have their own /var/lib/kubelet, /etc/cdi, /run/cdi and so on. Root is
needed for all but "build".`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Flags before a command are ours even where those after it are not (kubectl).
		TraverseChildren: true,
		// Without this, cobra prints the help for a command that there is not, and all is well.
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("there is no command %q: see %s --help", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	name := os.Getenv(envName)
	if name == "" {
		name = "dovetail"
	}
	cmd.PersistentFlags().StringVar(&o.name, "name", name, "name of the cluster; clusters of different names live side by side (or "+envName+")")
	cmd.PersistentFlags().StringVar(&o.stateDir, "state-dir", "", "where the cluster keeps its state (default "+state.Base+"/NAME)")
	cmd.AddCommand(buildCommand(), upCommand(o), downCommand(o), statusCommand(o), logsCommand(o), kubeconfigCommand(o),
		kubectlCommand(o), runCommand(o), execCommand(o), loadCommand(o), rebootCommand(o),
		pauseCommand(o), resumeCommand(o))
	cmd.AddCommand(kubeletCommands(o)...)
	cmd.AddCommand(hiddenCommands(o)...)
	return cmd
}

// cluster is the cluster that the flags name, not read from disk.
func (o *options) cluster() (*state.Cluster, error) {
	dir := o.stateDir
	if dir == "" { // one started with --state-dir is found by its name
		dir, _ = hostdirs.Host().StateDir(o.name)
	}
	return state.New(o.name, dir)
}

// loaded is the cluster that the flags name, with what it was started with.
func (o *options) loaded() (*state.Cluster, error) {
	c, err := o.cluster()
	if err != nil {
		return nil, err
	}
	err = c.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no cluster %q (looked in %s): start it with `up`, or name it with --name", c.Name, c.Dir)
	}
	return c, err
}

// running is a cluster whose init is alive.
func (o *options) running() (*state.Cluster, state.Run, error) {
	c, err := o.loaded()
	if err != nil {
		return nil, state.Run{}, err
	}
	run, ok, err := state.LoadRun(c.RunFile())
	if err != nil {
		return nil, run, err
	}
	if !ok || !run.Alive() {
		return nil, run, fmt.Errorf("cluster %q does not run (its init ended; see %s): `down` and `up` start it anew", c.Name, c.Log("init"))
	}
	return c, run, nil
}

func needRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("root is needed, for namespaces, mounts and cgroups: use sudo")
	}
	return nil
}
