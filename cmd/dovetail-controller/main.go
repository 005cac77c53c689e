// Command dovetail-controller looks after the cluster's PartitionClasses.
package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/command"
)

const program = "dovetail-controller"

func main() { command.Main(newRoot(), context.Canceled) }

func newRoot() *cobra.Command {
	return command.New(program, "Keeps DeviceClasses and statuses of PartitionClasses", newRun())
}
