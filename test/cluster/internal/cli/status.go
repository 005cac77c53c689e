package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/cgroup"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/control"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/controlplane"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

func statusCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the cluster's programs and nodes; exit code 0 if all are well",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, run, err := o.running()
			if err != nil {
				return err
			}
			tree, err := cgroup.Detect(cgroup.Root)
			if err != nil {
				return err
			}
			report, healthy, err := health(c)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "cluster %q, init is process %d, %s, state in %s\n%s", c.Name, run.PID, tree, c.Dir, report)
			if !healthy {
				return exitCode(1)
			}
			return nil
		},
	}
}

// health asks a cluster how it is.
func health(c *state.Cluster) (report string, healthy bool, err error) {
	ans, err := control.Call(c.Control(), control.Request{Op: controlplane.OpState})
	if err != nil {
		return "", false, err
	}
	healthy = true
	var b strings.Builder
	for _, d := range ans.Daemon {
		healthy = healthy && d.State == "running"
		fmt.Fprintf(&b, "  %-26s %s\n", d.Name, d.State)
	}
	ready := 0
	for _, n := range ans.Nodes {
		word := "NotReady"
		if n.Ready {
			word = "Ready"
			ready++
		}
		fmt.Fprintf(&b, "  %-26s %s, boot %s\n", n.Name, word, n.BootID)
	}
	if len(ans.Nodes) == 0 {
		fmt.Fprintln(&b, "  nodes                      unknown: the API server does not answer")
	}
	return b.String(), healthy && ready == len(c.Nodes), nil
}

func kubeconfigCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the admin's kubeconfig; it works within `run`",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.loaded()
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
			return nil
		},
	}
}

func logsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "logs [COMPONENT]",
		Short: "Print a component's log, or list the components that have one",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.loaded()
			if err != nil {
				return err
			}
			entries, err := os.ReadDir(c.Logs())
			if err != nil {
				return err
			}
			var names []string
			for _, e := range entries {
				names = append(names, strings.TrimSuffix(e.Name(), ".log"))
			}
			if len(args) == 0 {
				for _, n := range names {
					fmt.Fprintf(cmd.OutOrStdout(), "%-26s %s\n", n, c.Log(n))
				}
				return nil
			}
			b, err := os.ReadFile(c.Log(filepath.Base(args[0])))
			if err != nil {
				return fmt.Errorf("no log of %q; there are: %s", args[0], strings.Join(names, ", "))
			}
			_, err = cmd.OutOrStdout().Write(b)
			return err
		},
	}
}
