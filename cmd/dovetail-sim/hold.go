package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
)

func (a *app) hold() *cobra.Command {
	var instance, computeInstance int
	cmd := &cobra.Command{
		Use: "hold GPU", Short: "Hold a GPU or one of its instances open, as a monitor does, until this is killed",
		Long: "Hold a GPU or one of its instances open, as a monitor does, until this is killed. Meanwhile the\n" +
			"instance cannot be destroyed, nor the GPU be reset or its MIG mode switched.",
		Example: "  dovetail-sim hold --root /run/machine 0 --instance 1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var ids []int
			switch flags := cmd.Flags(); {
			case flags.Changed("compute-instance") && !flags.Changed("instance"):
				return fmt.Errorf("--compute-instance %d: give --instance, too", computeInstance)
			case flags.Changed("compute-instance"):
				ids = []int{instance, computeInstance}
			case flags.Changed("instance"):
				ids = []int{instance}
			}
			m, err := a.open()
			if err != nil {
				return err
			}
			// Whoever made the instance may not have been allowed to make its device nodes.
			if _, err := tree.Sync(m, tree.Built{}); err != nil {
				return err
			}
			hold, err := m.Hold(args[0], ids...)
			if err != nil {
				return err
			}
			defer hold.Release()
			for _, node := range hold.Missing {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %s is not there (mknod needs root): nobody can find out who holds it\n", node)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "held")
			<-cmd.Context().Done()
			return nil
		},
	}
	cmd.Flags().IntVar(&instance, "instance", 0, "the `ID` of a GPU instance; left out, the GPU is held")
	cmd.Flags().IntVar(&computeInstance, "compute-instance", 0, "the `ID` of a compute instance in it")
	return cmd
}
