package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

type inventoryOptions struct {
	looker
	sharing      sharing
	classes      classes
	output, node string
	profiles     bool
}

// views of what was seen, by the value of --output.
var (
	deviceViews  = map[string]func(io.Writer, seen, string) error{"table": writeTable, "yaml": writeYAML, "json": writeJSON}
	profileViews = map[string]func(io.Writer, seen, string) error{"table": writeProfileTable, "yaml": writeProfileYAML, "json": writeProfileJSON}
)

// viewOf is the one that --output asks for.
func viewOf[View any](views map[string]View, output string) (View, error) {
	view, ok := views[output]
	if !ok {
		return view, fmt.Errorf("--output: %q is not known: want table, yaml or json", output)
	}
	return view, nil
}

func newInventory() *cobra.Command {
	var o inventoryOptions
	cmd := &cobra.Command{
		Use:   "inventory",
		Short: "Print what this node publishes, or would publish; needs no cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	o.addFlags(flags)
	o.sharing.addFlags(flags)
	o.classes.addFlags(flags)
	flags.StringVarP(&o.output, "output", "o", "table", "table, yaml or json (the last two as ResourceSlices)")
	flags.BoolVar(&o.profiles, "profiles", false, "print the profiles of partitions that each model of GPU has, whether or not they are free")
	flags.StringVar(&o.node, "node-name", fromEnvironment(nodeNameVariable, "this-node"),
		"name of the node, as it would stand in the slices, and by which --network-config finds what is said of it (default: $"+nodeNameVariable+", or this-node)")
	defaultsInText(flags, "node-name")
	return cmd
}

func (o *inventoryOptions) run(ctx context.Context, out, errs io.Writer) error {
	views := deviceViews
	if o.profiles {
		views = profileViews
	}
	write, err := viewOf(views, o.output)
	if err != nil {
		return err
	}
	sharing, err := o.sharing.parse()
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
	what.published.Sharing, what.published.Network = sharing, network
	unfit, err := o.classes.choose(&what, o.pluginDir)
	if err != nil {
		return err
	}
	if unfit != nil {
		fmt.Fprintln(errs, unfit) // the rest is right all the same
	}
	return write(out, what, o.node)
}
