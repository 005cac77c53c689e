package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/standin"
)

// nics is what becomes of network cards.
func (a *app) nics() *cobra.Command {
	cmd := &cobra.Command{
		Use: "nics", Short: "Pull cables and cards, make virtual functions, and keep interfaces on a real network",
		Long: "Pull cables and cards, make virtual functions, and keep interfaces on a real network. A NIC is named\n" +
			"by PCI address, or by an interface or RDMA device that it has after boot.",
	}
	cmd.AddCommand(
		a.one("up NIC", "Plug a NIC's cable in", func(m *simulator.Machine, nic string) error { return m.SetLink(nic, true) }),
		a.one("down NIC", "Pull a NIC's cable out", func(m *simulator.Machine, nic string) error { return m.SetLink(nic, false) }),
		a.one("unplug NIC", "Take a NIC off the bus while the machine runs", (*simulator.Machine).Unplug),
		a.one("plug NIC", "Put a NIC that was unplugged back", (*simulator.Machine).Plug),
		a.vfs(), a.rdma(), a.runNICs(),
	)
	return cmd
}

func (a *app) vfs() *cobra.Command {
	return &cobra.Command{
		Use: "vfs NIC NUMBER", Short: "Give a NIC virtual functions, or take them away with 0",
		Long: "Give a NIC virtual functions, or take them away with 0, as writing to sriov_numvfs does: that the\n" +
			"rendered file is written to has no effect.",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return fmt.Errorf("NUMBER %q is no number of virtual functions: give 0 or more", args[1])
			}
			return a.do(func(m *simulator.Machine) error { return m.SetVFs(args[0], n) })
		},
	}
}

func (a *app) rdma() *cobra.Command {
	return &cobra.Command{
		Use: "rdma shared|exclusive", Short: "Say whether RDMA devices belong to one network namespace each",
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: []string{"shared", "exclusive"},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.do(func(m *simulator.Machine) error { return m.SetRDMAExclusive(args[0] == "exclusive") })
		},
	}
}

func (a *app) runNICs() *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Keep the machine's network interfaces in this network namespace, until this is killed",
		Long: "Keep the machine's network interfaces in this network namespace, until this is killed (root is needed).\n" +
			"Each is one end of a pair of veths, with the name and the addresses that the machine's has, and a link\n" +
			"where that has one. What becomes of it shows in the machine's sysfs. When a Pod's namespace ends with\n" +
			"one in it, it comes back as a real one would: under the name that it had there, down, without\n" +
			"addresses. All of them go when this ends. \"ready\" is printed once they are there.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := a.open()
			if err != nil {
				return err
			}
			note := func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), "note:", text) }
			return standin.Run(cmd.Context(), m, note, func() { fmt.Fprintln(cmd.OutOrStdout(), "ready") })
		},
	}
}

// showNICs lists the NICs. It prints nothing where there are none.
func showNICs(out io.Writer, state *simulator.State) error {
	if len(state.NICs) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nNIC\tMODEL\tDRIVER\tRDMA\tINTERFACES\tVFS\tSTATE")
	for i := range state.NICs {
		n := state.NIC(i)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\n", n.Spec.Address, n.Spec.Model, dash(n.Spec.Driver), dash(n.RDMA),
			dash(interfaces(n)), len(n.VFs), n.Spec.MaxVFs, nicCondition(n))
	}
	return table.Flush()
}

func interfaces(n simulator.NIC) string {
	var words []string
	for _, d := range n.Netdevs {
		word := d.Name
		switch {
		case d.Namespace != "":
			word += " (in " + d.Namespace + ")"
		case !d.Up:
			word += " (down)"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func nicCondition(n simulator.NIC) string {
	switch {
	case n.Unplugged:
		return "unplugged"
	case n.NoLink:
		return troubles("no link", n.Trouble)
	}
	return troubles("", n.Trouble)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
