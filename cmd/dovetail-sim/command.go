package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/command"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
)

// app is what the subcommands share.
type app struct{ root string }

func newRoot() *cobra.Command {
	a := &app{}
	root := command.New("dovetail-sim", "Make a simulated machine of GPUs and NICs, and break it",
		a.create(), a.show(),
		a.one("lose GPU", "Let a GPU fall off the bus", func(m *simulator.Machine, gpu string) error {
			return m.Inject(gpu, simulator.FaultLost)
		}),
		a.one("restore GPU", "Take all faults away from a GPU", restore),
		a.one("require-reset GPU", "Let most queries of a GPU ask for a reset first", func(m *simulator.Machine, gpu string) error {
			return m.Inject(gpu, simulator.FaultResetRequired)
		}),
		a.one("hide-memory GPU", "Let a GPU no longer say how much memory it has", func(m *simulator.Machine, gpu string) error {
			return m.Inject(gpu, simulator.FaultMemoryNotSupported)
		}),
		a.one("no-memory-limits GPU", "Let the driver limit no container's memory of a GPU", func(m *simulator.Machine, gpu string) error {
			return m.Inject(gpu, simulator.FaultNoMemoryLimits)
		}),
		a.one("reset GPU", "Reset a GPU", (*simulator.Machine).Reset),
		a.xid(), a.slow(), a.fail(), a.mig(), a.nics(), a.hold(), a.driver(), a.reboot(),
	)
	root.Long = "A simulated machine is a directory with what a GPU node shows of its hardware: sysfs, proc,\n" +
		"device nodes, and an NVIDIA driver whose NVML answers for it. Changes take effect at once in\n" +
		"every process that uses the machine. A GPU is named by index, UUID or PCI address."
	root.PersistentFlags().StringVar(&a.root, "root", "", "the machine's root `directory` (required)")
	if err := root.MarkPersistentFlagRequired("root"); err != nil {
		panic(err) // the flag is defined above
	}
	return root
}

func restore(m *simulator.Machine, gpu string) error {
	var errs []error
	for _, fault := range simulator.Faults() {
		errs = append(errs, m.Restore(gpu, fault))
	}
	return errors.Join(errs...)
}

// open opens the machine; its files follow what is done to it.
func (a *app) open() (*simulator.Machine, error) {
	m, err := simulator.Open(a.root)
	if err != nil {
		return nil, err
	}
	tree.Follow(m)
	return m, nil
}

// state is the machine's.
func (a *app) state() (*simulator.State, error) {
	m, err := a.open()
	if err != nil {
		return nil, err
	}
	return m.State()
}

// do does one thing to the machine.
func (a *app) do(thing func(*simulator.Machine) error) error {
	m, err := a.open()
	if err != nil {
		return err
	}
	return thing(m)
}

// change is do for what changes the machine's files, too.
func (a *app) change(cmd *cobra.Command, thing func(*simulator.Machine) error) error {
	return a.do(func(m *simulator.Machine) error {
		if err := thing(m); err != nil {
			return err
		}
		return a.sync(cmd, m, tree.Built{})
	})
}

// one is a subcommand that does one thing to one GPU or NIC.
func (a *app) one(use, short string, thing func(*simulator.Machine, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.do(func(m *simulator.Machine) error { return thing(m, args[0]) })
		},
	}
}

// sync renders the machine after a change, and says what could not be.
func (a *app) sync(cmd *cobra.Command, m *simulator.Machine, built tree.Built) error {
	report, err := tree.Sync(m, built)
	for _, note := range report.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d files written, %d removed\n", m.Root(), report.Written, report.Removed)
	return nil
}
