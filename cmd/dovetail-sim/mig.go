package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// mig are an administrator's other tools, such as nvidia-smi mig.
func (a *app) mig() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mig", Short: "Switch MIG mode, and make and destroy partitions, as another tool would",
		Long: "Switch MIG mode, and make and destroy partitions, as another tool than the driver would. Models\n" +
			"that need a reset for it switch with the next reset.",
	}
	cmd.AddCommand(
		a.one("on GPU", "Switch MIG mode on", func(m *simulator.Machine, gpu string) error { return m.SetMIGMode(gpu, true) }),
		a.one("off GPU", "Switch MIG mode off", func(m *simulator.Machine, gpu string) error { return m.SetMIGMode(gpu, false) }),
		a.makePartition(), a.destroyPartition(), a.listPartitions(),
	)
	return cmd
}

func (a *app) makePartition() *cobra.Command {
	var start int
	cmd := &cobra.Command{
		Use: "make GPU PROFILE", Short: "Make a GPU instance, and a compute instance that spans it",
		Example: "  dovetail-sim mig make --root /run/machine 0 3g.40gb --start 4",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.open()
			if err != nil {
				return err
			}
			var at *int
			if cmd.Flags().Changed("start") {
				at = &start
			}
			made, err := m.MakePartition(args[0], args[1], at)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "instance %d at %d: %s\n", made.ID, made.Placement.Start, made.ComputeInstances[0].UUID)
			return nil
		},
	}
	cmd.Flags().IntVar(&start, "start", 0, "where its placement starts, in memory `units`; left out, the simulator picks")
	return cmd
}

func (a *app) destroyPartition() *cobra.Command {
	return &cobra.Command{
		Use: "destroy GPU INSTANCE", Short: "Destroy a GPU instance and its compute instances",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := strconv.Atoi(args[1])
			if err != nil {
				return fmt.Errorf("INSTANCE %q is not a GPU instance's ID: mig list shows them", args[1])
			}
			return a.do(func(m *simulator.Machine) error { return m.DestroyPartition(args[0], id) })
		},
	}
}

func (a *app) listPartitions() *cobra.Command {
	return &cobra.Command{
		Use: "list [GPU]", Short: "List the partitions of a GPU, or of all", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			state, err := a.state()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return showPartitions(cmd.OutOrStdout(), state, "")
			}
			if _, err := state.Find(args[0]); err != nil {
				return err
			}
			return showPartitions(cmd.OutOrStdout(), state, args[0])
		},
	}
}
