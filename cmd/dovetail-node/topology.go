package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
)

type topologyOptions struct {
	looker
	output, node string
}

// topologyViews of a machine, by the value of --output.
var topologyViews = map[string]func(io.Writer, topology) error{
	"table": writeTopology,
	"yaml":  func(out io.Writer, t topology) error { return printYAML(out, t) },
	"json":  func(out io.Writer, t topology) error { return printJSON(out, t) },
}

func newTopology() *cobra.Command {
	var o topologyOptions
	cmd := &cobra.Command{
		Use:   "topology",
		Short: "Print how near this node's GPUs and NICs are to each other, and the pairs that are offered; needs no cluster",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	o.addFlags(flags)
	flags.StringVarP(&o.output, "output", "o", "table", "table, yaml or json")
	flags.StringVar(&o.node, "node-name", os.Getenv(nodeNameVariable), "name of the node, by which --network-config finds what is said of it (default: $"+nodeNameVariable+")")
	defaultsInText(flags, "node-name")
	return cmd
}

func (o *topologyOptions) run(ctx context.Context, out io.Writer) error {
	write, err := viewOf(topologyViews, o.output)
	if err != nil {
		return err
	}
	network, err := o.nics.network(o.node)
	if err != nil {
		return err
	}
	what, err := o.look(ctx)
	if err != nil {
		return err
	}
	what.published.Network = network
	return write(out, topologyOf(&what.published))
}
