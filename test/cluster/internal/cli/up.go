package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/build"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/config"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/launch"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build [PROGRAM...]",
		Short: "Build the cluster's programs and images, once",
		Long: `Build etcd, Kubernetes, containerd, runc and the CNI plugins from pinned modules,
and two images. The result is kept in DOVETAIL_CACHE, or else in dovetail/ below
XDG_CACHE_HOME or ~/.cache, one directory per set of versions. A build that was
cut short goes on where it was. The directory is printed.

With the names of programs, only these are built, and their paths printed.`,
		RunE: func(cmd *cobra.Command, programs []string) error {
			c, err := build.Build(cmd.Context(), os.Stderr, programs...)
			if err := firstOf(cmd.Context().Err(), err); err != nil {
				return err
			}
			if len(programs) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), c.Dir)
			}
			for _, name := range programs {
				fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(c.Bin(), name))
			}
			return nil
		},
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// upFlags are what a cluster is started with.
type upFlags struct {
	nodes         int
	gates         string
	runtimeConfig string
}

func upCommand(o *options) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up [N]",
		Short: "Start the cluster and wait until Pods can run",
		Long: `Start the cluster, build it first if need be, and wait until Pods can run.

Feature gates are Kubernetes' defaults. With --feature-gates, the API versions
that gated features need are served as well.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				n, err := strconv.Atoi(args[0])
				if err != nil {
					return fmt.Errorf("%q is not a number of nodes", args[0])
				}
				if cmd.Flags().Changed("nodes") && n != f.nodes {
					return fmt.Errorf("--nodes says %d, the argument %d", f.nodes, n)
				}
				f.nodes = n
			}
			return up(cmd, o, f)
		},
	}
	cmd.Flags().IntVarP(&f.nodes, "nodes", "n", 1, "number of nodes")
	cmd.Flags().StringVar(&f.gates, "feature-gates", "", "gates for all of Kubernetes, as A=true,B=false")
	cmd.Flags().StringVar(&f.runtimeConfig, "runtime-config", "", "API versions to serve (default: what gates may need, if any is given)")
	return cmd
}

func up(cmd *cobra.Command, o *options, f upFlags) error {
	c, err := o.cluster()
	if err != nil {
		return err
	}
	if c.Nodes, err = state.NodeNames(f.nodes); err != nil {
		return err
	}
	if _, err := config.ParseGates(f.gates); err != nil {
		return err
	}
	if err := needRoot(); err != nil {
		return err
	}
	c.FeatureGates, c.RuntimeConfig = f.gates, f.runtimeConfig
	if c.RuntimeConfig == "" {
		c.RuntimeConfig = config.RuntimeConfig(f.gates)
	}
	if _, _, err := o.running(); err == nil {
		return already(o, f)
	}
	begin := time.Now()
	cache, err := build.Build(cmd.Context(), os.Stderr)
	if err := firstOf(cmd.Context().Err(), err); err != nil {
		return err
	}
	c.Bin, c.Images = cache.Bin(), cache.Images()
	err = launch.Up(cmd.Context(), c, os.Stderr)
	if errors.Is(err, launch.ErrRunning) {
		return already(o, f)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%5.1f s  up\n%s", time.Since(begin).Seconds(), usage(c))
	return nil
}

// already answers an `up` of a cluster that is up.
func already(o *options, f upFlags) error {
	c, _, err := o.running()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "cluster %q is up already, with %d node(s)\n", c.Name, len(c.Nodes))
	if len(c.Nodes) != f.nodes || c.FeatureGates != f.gates {
		fmt.Fprintln(os.Stderr, "it was started with other nodes or feature gates than asked for now: `down` first, if they matter")
	}
	report, healthy, err := health(c)
	if err != nil {
		return err
	}
	if !healthy {
		fmt.Fprint(os.Stderr, report)
		return errors.New("it is not healthy: `down` and `up` start it anew")
	}
	fmt.Fprint(os.Stderr, usage(c))
	return nil
}

func usage(c *state.Cluster) string {
	self, err := os.Executable()
	if err != nil {
		self = "cluster"
	}
	if c.Name != "dovetail" {
		self += " --name " + c.Name
	}
	return fmt.Sprintf(`
use it:
  %[1]s kubectl get nodes
  %[1]s load IMAGE.tar
  %[1]s exec %[2]s sh          on a node
  %[1]s run go test ./...         with KUBECONFIG set, reaching the API server
  %[1]s down
`, self, c.Nodes[0])
}

func downCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove all of it",
		Long: `End the cluster, whatever state it is in, and remove its processes, cgroups, and
state directory. What was built stays. Without a cluster it does nothing.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := needRoot(); err != nil {
				return err
			}
			c, err := o.cluster()
			if err != nil {
				return err
			}
			return launch.Down(c, os.Stderr)
		},
	}
}
