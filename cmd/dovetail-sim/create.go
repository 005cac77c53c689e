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
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
)

func (a *app) create() *cobra.Command {
	var name string
	var built tree.Built
	cmd := &cobra.Command{
		Use:   "create MACHINE",
		Short: "Make a machine, or bring its files up to date",
		Long: "MACHINE is a description's file (ending in .yaml), or one of the built-in\n  " +
			strings.Join(machines.Names(), ", ") + "\n\nA machine that is there already keeps its state, unless its description has changed.\n" +
			"Device nodes are made where this runs as root.",
		Example: "  go build -buildmode=c-shared -o libnvidia-ml.so.1 ./cmd/libnvidia-ml\n" +
			"  CGO_ENABLED=0 go build ./cmd/dovetail-sim-tools\n" +
			"  dovetail-sim create --root /run/machine --library libnvidia-ml.so.1 --tools dovetail-sim-tools dgx-h100",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := load(args[0], name)
			if err != nil {
				return err
			}
			if err := there("library", built.Library, "libnvidia-ml"); err != nil {
				return err
			}
			if err := there("tools", built.Tools, "dovetail-sim-tools"); err != nil {
				return err
			}
			m, created, err := simulator.Create(a.root, spec)
			if err != nil {
				return err
			}
			what := "is there already"
			if created {
				what = "made"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "machine %s (%s) %s\n", spec.Name, contents(spec), what)
			return a.sync(cmd, m, built)
		},
	}
	cmd.Flags().StringVar(&built.Library, "library", "", "the simulated NVML, a `file` built from cmd/libnvidia-ml; without it the machine's driver has none")
	cmd.Flags().StringVar(&built.Tools, "tools", "", "nvidia-smi and MPS, a `file` built from cmd/dovetail-sim-tools; without it the machine's driver has no programs")
	cmd.Flags().StringVar(&name, "name", "", "call the machine `NAME`: machines of different names have different UUIDs")
	return cmd
}

// contents says in short what a machine has.
func contents(spec simulator.Spec) string {
	var words []string
	if n := len(spec.GPUs); n > 0 {
		words = append(words, fmt.Sprintf("%d GPUs, driver %s", n, spec.Driver.Version))
	}
	if n := len(spec.NICs); n > 0 {
		words = append(words, fmt.Sprintf("%d NICs", n))
	}
	return strings.Join(words, ", ")
}

// there says whether a file that was built from a command is there, where one is given.
func there(flag, file, command string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("--%s: %w: build it from ./cmd/%s", flag, err, command)
	}
	return nil
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
