package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/description"
)

func (a *app) create() *cobra.Command {
	var library, name string
	cmd := &cobra.Command{
		Use:   "create MACHINE",
		Short: "Make a machine, or bring its files up to date",
		Long: "MACHINE is a description's file (ending in .yaml), or one of the built-in\n  " +
			strings.Join(machines.Names(), ", ") + "\n\nA machine that is there already keeps its state, unless its description has changed.\n" +
			"Device nodes are made where this runs as root.",
		Example: "  go build -buildmode=c-shared -o libnvidia-ml.so.1 ./cmd/libnvidia-ml\n" +
			"  dovetail-sim create --root /run/machine --library libnvidia-ml.so.1 dgx-h100",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := load(args[0], name)
			if err != nil {
				return err
			}
			if library != "" {
				if _, err := os.Stat(library); err != nil {
					return fmt.Errorf("--library: %w: build it from ./cmd/libnvidia-ml", err)
				}
			}
			m, created, err := simulator.Create(a.root, spec)
			if err != nil {
				return err
			}
			what := "is there already"
			if created {
				what = "made"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "machine %s (%d GPUs, driver %s) %s\n", spec.Name, len(spec.GPUs), spec.Driver.Version, what)
			return a.sync(cmd, m, library)
		},
	}
	cmd.Flags().StringVar(&library, "library", "", "the simulated NVML, a `file` built from cmd/libnvidia-ml; without it the machine's driver has none")
	cmd.Flags().StringVar(&name, "name", "", "call the machine `NAME`: machines of different names have different UUIDs")
	return cmd
}

// load reads a description by its file or by its built-in name.
func load(machine, name string) (simulator.Spec, error) {
	data, err := machines.Description(machine)
	if !slices.Contains(machines.Names(), machine) && strings.HasSuffix(machine, ".yaml") {
		data, err = os.ReadFile(machine)
	}
	if err != nil {
		return simulator.Spec{}, fmt.Errorf("%w, or give a file that ends in .yaml", err)
	}
	file, err := description.Read(data)
	if err != nil {
		return simulator.Spec{}, err
	}
	if name != "" {
		file.Name = name
	}
	return file.Spec()
}
