package cli

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/test/cluster/internal/controlplane"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/initproc"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/node"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/spawn"
	"github.com/dovetail-dra/dovetail/test/cluster/internal/state"
)

// child serves spawn's subcommand ahead of everything else, since its arguments
// are another program's.
func child(args []string) (code int, ok bool) {
	if len(args) < 5 || args[1] != spawn.ChildCommand {
		return 0, false
	}
	return spawn.Child(args[2], spawn.Bond(args[3]), args[4:]), true
}

// hiddenCommands are the parts of a cluster that are this program too.
func hiddenCommands(o *options) []*cobra.Command {
	part := func(use string, args int, main func(c *state.Cluster, args []string) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Hidden: true, Args: cobra.ExactArgs(args),
			RunE: func(_ *cobra.Command, a []string) error {
				c, err := o.loaded()
				if err != nil {
					return err
				}
				return main(c, a)
			},
		}
	}
	return []*cobra.Command{
		part(initproc.Command, 0, func(c *state.Cluster, _ []string) error { return initproc.Main(c) }),
		part(initproc.SupervisorCommand, 0, func(c *state.Cluster, _ []string) error {
			unix.CloseOnExec(initproc.ProgressFD)
			return controlplane.Main(c, os.NewFile(initproc.ProgressFD, "progress"))
		}),
		part(node.Command, 1, func(c *state.Cluster, a []string) error { return node.Main(c, a[0]) }),
	}
}
