package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/host"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

type inventoryOptions struct {
	roots
	sharing           sharing
	output, node      string
	pluginDir, cdiDir string
	profiles          bool
}

// seen is the hardware as it is, and as it is published: apart from claims.
type seen struct{ now, published machine.Machine }

// views of what was seen, by the value of --output.
var (
	deviceViews  = map[string]func(io.Writer, seen, string) error{"table": writeTable, "yaml": writeYAML, "json": writeJSON}
	profileViews = map[string]func(io.Writer, seen, string) error{"table": writeProfileTable, "yaml": writeProfileYAML, "json": writeProfileJSON}
)

func newInventory() *cobra.Command {
	var o inventoryOptions
	cmd := &cobra.Command{
		Use:   "inventory",
		Short: "Print what this node publishes, or would publish; needs no cluster",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	o.addFlags(flags)
	o.sharing.addFlags(flags)
	flags.StringVarP(&o.output, "output", "o", "table", "table, yaml or json (the last two as ResourceSlices)")
	flags.BoolVar(&o.profiles, "profiles", false, "print the profiles of partitions that each model of GPU has, whether or not they are free")
	flags.StringVar(&o.node, "node-name", "this-node", "name of the node, as it would stand in the slices")
	flags.StringVar(&o.pluginDir, "plugin-dir", fromEnvironment(pluginDirVariable, defaultPluginDir),
		"the agent's directory, whose journal tells which partitions are there for claims (default: $"+pluginDirVariable+", or "+defaultPluginDir+")")
	flags.StringVar(&o.cdiDir, "cdi-dir", fromEnvironment(cdiDirVariable, defaultCDIDir),
		"the agent's CDI specifications, asked where its journal is damaged (default: $"+cdiDirVariable+", or "+defaultCDIDir+")")
	for _, name := range []string{"plugin-dir", "cdi-dir"} {
		flags.Lookup(name).DefValue = "" // it stands in the text
	}
	return cmd
}

func (o *inventoryOptions) run(ctx context.Context, out io.Writer) error {
	views := deviceViews
	if o.profiles {
		views = profileViews
	}
	write, ok := views[o.output]
	if !ok {
		return fmt.Errorf("--output: %q is not known: want table, yaml or json", o.output)
	}
	sharing, err := o.sharing.parse()
	if err != nil {
		return err
	}
	adapter, _, here := o.open(func(g hardware.GPUs) hardware.GPUs { return g })
	defer func() { _ = adapter.Close() }()
	what, err := o.look(ctx, here)
	if err != nil {
		return err
	}
	what.published.Sharing = sharing
	return write(out, what, o.node)
}

// look describes the hardware, and leaves out of what is published what the journal
// of an agent says was made for claims.
func (o *inventoryOptions) look(ctx context.Context, here *host.Host) (what seen, err error) {
	describe := func(ctx context.Context) (machine.Machine, error) {
		what.now, err = here.Describe(ctx)
		return what.now, err
	}
	dir := filepath.Join(o.pluginDir, "claims")
	if _, err := os.Stat(dir); err != nil {
		what.published, err = describe(ctx) // no agent has been here
		return what, err
	}
	bootID, err := here.BootID()
	if err != nil {
		return what, fmt.Errorf("--proc-root: %w", err)
	}
	records, err := journal.Open(dir)
	if err != nil {
		return what, fmt.Errorf("--plugin-dir: %w", err)
	}
	specs, err := cdi.NewStore(o.cdiDir, nil)
	if err != nil {
		return what, fmt.Errorf("--cdi-dir: %w", err)
	}
	what.published, _, err = claim.New(claim.Config{BootID: bootID, Journal: records, CDI: specs}).Unclaimed(ctx, describe)
	return what, err
}
