package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// writeShares has a line for each way in which GPUs are shared, also where no GPU has
// room for such a share; more where not all GPUs keep such shares to their memory alike.
func writeShares(out io.Writer, what *seen) error {
	m := &what.published
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SHARES\tSIZE\tMEMORY\tCOMPUTE\tAT MOST\tMEMORY ENFORCED\tGPUS")
	devices := slices.DeleteFunc(m.Devices(), func(d machine.Device) bool { return what.offer.Presence(d) != catalog.Present })
	for _, kind := range []machine.Kind{machine.KindMPS, machine.KindTimeSlice} {
		writeShare(table, m, devices, kind, nil)
		for i := range m.Sharing.Sizes {
			if size := &m.Sharing.Sizes[i]; size.Kind == kind {
				writeShare(table, m, devices, kind, size)
			}
		}
	}
	return table.Flush()
}

func writeShare(out io.Writer, m *machine.Machine, devices []machine.Device, kind machine.Kind, size *machine.Size) {
	gpus := map[machine.Enforcement]int{}
	for _, d := range devices {
		if d.Kind == kind && d.Size == size {
			gpus[m.Enforces(d.GPU, kind)]++
		}
	}
	if len(gpus) == 0 {
		gpus["-"] = 0
	}
	name, memory, compute, clients := "any", "any", "any", m.Clients(kind)
	if size != nil {
		name, memory, compute, clients = size.Name, gib(size.Memory), fmt.Sprintf("%d%%", size.Compute), m.ClientsOf(size)
		if size.Memory == 0 {
			memory = fmt.Sprintf("1/%d", size.Clients)
		}
	}
	if kind != machine.KindMPS || size != nil && size.Compute == 0 {
		compute = "-"
	}
	for _, level := range []machine.Enforcement{machine.EnforcementStrict, machine.EnforcementBestEffort, machine.EnforcementNone, "-"} {
		if n, any := gpus[level]; any {
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%d\t%s\t%d\n", kind, name, memory, compute, clients, level, n)
		}
	}
}
