package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func (a *app) show() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show the machine and its state", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := simulator.Open(a.root)
			if err != nil {
				return err
			}
			state, err := m.State()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "machine %s, boot %s, driver %s (CUDA %s) %s\n\n",
				state.Spec.Name, state.BootID, state.Spec.Driver.Version, state.Spec.Driver.CUDA, state.Driver)
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "GPU\tADDRESS\tMODEL\tUUID\tNUMA\tCOMPUTE MODE\tMIG\tSTATE")
			for i := range state.GPUs {
				g := state.GPU(i)
				fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", i, g.Spec.Address, g.Spec.Model, g.Spec.UUID,
					g.Spec.NUMANode, g.ComputeMode, migMode(g), condition(g))
			}
			return table.Flush()
		},
	}
}

func migMode(g simulator.GPU) string {
	switch {
	case g.Model.MIG == nil:
		return "none"
	case g.MIGEnabled:
		return "on"
	}
	return "off"
}

func condition(g simulator.GPU) string {
	var words []string
	for _, fault := range g.Faults {
		words = append(words, string(fault))
	}
	if g.Recovery != simulator.RecoveryNone {
		words = append(words, "asks for a reset")
	}
	for call, delay := range g.Delays {
		words = append(words, fmt.Sprintf("%s slower by %v", call, delay))
	}
	if len(words) == 0 {
		return "well"
	}
	return strings.Join(words, ", ")
}
