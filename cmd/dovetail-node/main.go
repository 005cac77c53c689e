// Command dovetail-node is Dovetail's node agent.
package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/command"
)

const program = "dovetail-node"

func main() { command.Main(newRoot(), context.Canceled) }

func newRoot() *cobra.Command {
	return command.New(program, "Offers the GPUs and NICs of this node to Pods", newRun(), newInventory(), newTopology())
}
