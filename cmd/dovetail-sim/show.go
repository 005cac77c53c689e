package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

func (a *app) show() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show the machine and its state", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := a.state()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if len(state.GPUs) == 0 {
				fmt.Fprintf(out, "machine %s, boot %s, no GPUs\n", state.Spec.Name, state.BootID)
				return showNICs(out, state)
			}
			fmt.Fprintf(out, "machine %s, boot %s, driver %s (CUDA %s) %s\n\n",
				state.Spec.Name, state.BootID, state.Spec.Driver.Version, state.Spec.Driver.CUDA, state.Driver)
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "GPU\tADDRESS\tMODEL\tUUID\tNUMA\tCOMPUTE MODE\tMIG\tSTATE")
			for i := range state.GPUs {
				g := state.GPU(i)
				fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", i, g.Spec.Address, g.Spec.Model, g.Spec.UUID,
					g.Spec.NUMANode, g.ComputeMode, migMode(g), condition(g))
			}
			if err := table.Flush(); err != nil {
				return err
			}
			if err := showPartitions(out, state, ""); err != nil {
				return err
			}
			return showNICs(out, state)
		},
	}
}

// showPartitions lists the instances of one GPU, or of all where gpu is empty. It
// prints nothing where there are none.
func showPartitions(out io.Writer, state *simulator.State, gpu string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := "\nGPU\tINSTANCE\tPROFILE\tSTART\tSIZE\tCOMPUTE INSTANCE\tSLICES\tUUID\n"
	for i := range state.GPUs {
		g := state.GPU(i)
		if wanted, err := state.Find(gpu); gpu != "" && (err != nil || wanted.Index != i) {
			continue
		}
		for _, in := range g.Instances {
			profile, _ := g.Model.MIG.Profile(in.ProfileID)
			row += fmt.Sprintf("%d\t%d\t%s\t%d\t%d\t", i, in.ID, profile.Name, in.Placement.Start, in.Placement.Size)
			if len(in.ComputeInstances) == 0 {
				row += "none\t\t\n"
			}
			for n, c := range in.ComputeInstances {
				if n > 0 {
					row += "\t\t\t\t\t"
				}
				row += fmt.Sprintf("%d\t%d\t%s\n", c.ID, c.ComputeSlices, c.UUID)
			}
			fmt.Fprint(table, row)
			row = ""
		}
	}
	return table.Flush()
}

func migMode(g simulator.GPU) string {
	switch {
	case g.Model.MIG == nil:
		return "none"
	case g.MIGEnabled != g.MIGPending:
		return onOff(g.MIGEnabled) + " (" + onOff(g.MIGPending) + " after a reset)"
	}
	return onOff(g.MIGEnabled)
}

func onOff(on bool) string {
	if on {
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
	return troubles(strings.Join(words, ", "), g.Trouble)
}

// troubles adds what goes wrong because somebody asked for it.
func troubles(condition string, t simulator.Trouble) string {
	var words []string
	if condition != "" {
		words = append(words, condition)
	}
	for call, delay := range t.Delays {
		words = append(words, fmt.Sprintf("%s slower by %v", call, delay))
	}
	for call, failure := range t.Failures {
		words = append(words, fmt.Sprintf("%s fails %d times: %s", call, failure.Times, failure.Error))
	}
	if len(words) == 0 {
		return "well"
	}
	return strings.Join(words, ", ")
}
