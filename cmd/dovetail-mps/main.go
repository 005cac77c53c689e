// Command dovetail-mps looks after the node's MPS control daemons and time slices, on
// the word of the node agent. It has a Pod of its own, so that clients of MPS live on
// while the agent is upgraded.
package main

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/command"
	"github.com/dovetail-dra/dovetail/pkg/mps/launch"
)

// The first thread has main, and so it is the one that launch goes on to another program by:
// of a process whose first thread has ended /proc shows, for a moment, neither state nor
// environment.
func init() { runtime.LockOSThread() }

func main() { command.Main(newRoot(), context.Canceled) }

func newRoot() *cobra.Command {
	return command.New("dovetail-mps", "Looks after the MPS control daemons and time slices of this node",
		newRun(), newServe(), newProbe(), newLaunch())
}

// newLaunch is for dovetail-mps itself: it becomes a program of the driver's.
func newLaunch() *cobra.Command {
	return &cobra.Command{
		Use:    "launch SPEC",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(_ *cobra.Command, args []string) error { return launch.Exec(args[0]) },
	}
}
