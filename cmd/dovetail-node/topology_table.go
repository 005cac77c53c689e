package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// closenessLegend is in the order of nvidia-smi's.
const closenessLegend = `
X     itself
SYS   between NUMA nodes
NODE  between PCIe host bridges of one NUMA node
PHB   over one PCIe host bridge, as a rule the CPU
PXB   over several PCIe bridges, but not over the host bridge
PIX   over at most one PCIe bridge, as two ports of a switch
`

// writeTopology is for people who know "nvidia-smi topo -m": its matrix, and what comes
// of it.
func writeTopology(out io.Writer, t topology) error {
	for _, write := range []func(io.Writer, topology) error{writeMatrix, writeTopologyGPUs, writeTopologyNICs, writePairs} {
		if err := write(out, t); err != nil {
			return err
		}
	}
	for _, f := range t.Faults {
		fmt.Fprintf(out, "\n%s: %s\n", f.Device, f.Message)
	}
	return nil
}

func writeMatrix(out io.Writer, t topology) error {
	var labels []string
	numa := map[string]int{}
	for _, gpu := range t.GPUs {
		labels = append(labels, gpu.Label)
		numa[gpu.Label] = gpu.Location.NUMANode
	}
	for _, nic := range t.NICs {
		labels = append(labels, nic.Label)
		numa[nic.Label] = nic.Location.NUMANode
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\t%s\n", strings.Join(append(labels[:len(labels):len(labels)], "NUMA NODE"), "\t"))
	for _, a := range labels {
		row := []string{a}
		for _, b := range labels {
			cell := string(t.Closeness[a][b])
			if a == b {
				cell = "X"
			}
			row = append(row, cell)
		}
		fmt.Fprintln(table, strings.Join(append(row, known(numa[a])), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, closenessLegend+"\n")
	return err
}

func writeTopologyGPUs(out io.Writer, t topology) error {
	if len(t.GPUs) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GPU\tADDRESS\tPRODUCT\tUUID")
	for _, gpu := range t.GPUs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", gpu.Label, gpu.Address, gpu.Product, gpu.UUID)
	}
	fmt.Fprintln(table)
	return table.Flush()
}

func writeTopologyNICs(out io.Writer, t topology) error {
	if len(t.NICs) == 0 {
		_, err := fmt.Fprintln(out, "There are no NICs.")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NIC\tADDRESS\tRDMA DEVICE\tINTERFACES\tSPEED\tOFFERED\tRAIL\tLANES\tVFS\tHEALTH")
	for _, nic := range t.NICs {
		offered, rail, lanes, vfs := "no", "-", "-", "-"
		if nic.Withheld == "" {
			offered, rail, lanes, vfs = "yes", known(nic.Rail), fmt.Sprint(nic.Lanes), fmt.Sprint(nic.VFs)
		}
		health := "ok"
		if !nic.Health.OK() {
			health = string(nic.Health.Reason)
		}
		interfaces := strings.Join(nic.Interfaces, ",")
		if nic.Away {
			interfaces += " (away)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", nic.Label, nic.Address, orDash(nic.RDMADevice), orDash(strings.TrimSpace(interfaces)),
			speed(nic.Speed), offered, rail, lanes, vfs, health)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, nic := range t.NICs {
		if nic.Withheld != "" {
			fmt.Fprintf(out, "\n%s is not offered: %s\n", nic.Label, nic.Withheld)
		}
		if !nic.Health.OK() {
			fmt.Fprintf(out, "\n%s: %s\n", nic.Label, nic.Health.Message)
		}
	}
	return nil
}

// exclusiveNote says what is not offered then.
const exclusiveNote = `
RDMA devices belong to one network namespace each (rdma system: exclusive), so that NICs are not shared by
pairs, nor offered as rdma: run "rdma system set netns shared" on the node, before it has any Pods, to change it.
`

func writePairs(out io.Writer, t topology) error {
	if t.RDMAExclusive && len(t.NICs) > 0 {
		fmt.Fprint(out, exclusiveNote)
	}
	if len(t.Pairs) == 0 {
		_, err := fmt.Fprintln(out, "\nNo pairs are offered.")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nPAIR\tGPU\tNIC\tVF\tCLOSENESS\tLANES\tRAIL\tIN THE POD")
	for _, pair := range t.Pairs {
		vf, gets := "-", "RDMA device"
		if pair.VF != nil {
			vf = fmt.Sprint(*pair.VF)
		}
		if pair.Moves {
			gets = "interface and RDMA device"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", pair.Name, pair.GPU, pair.NIC, vf, pair.Closeness, pair.Lanes, known(pair.Rail), gets)
	}
	return table.Flush()
}

// known is a number that is -1 where it is not.
func known(n int) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func speed(gigabits int) string {
	if gigabits == 0 {
		return "-"
	}
	return fmt.Sprintf("%d Gb/s", gigabits)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
