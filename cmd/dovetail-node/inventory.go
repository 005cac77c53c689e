package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func newInventory() *cobra.Command {
	var r roots
	var output, node string
	cmd := &cobra.Command{
		Use:   "inventory",
		Short: "Print what this node would publish; needs no cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			adapter, _, here := r.open(func(g hardware.GPUs) hardware.GPUs { return g })
			defer func() { _ = adapter.Close() }()
			return inventory(cmd.Context(), cmd.OutOrStdout(), here.Describe, output, node)
		},
	}
	r.addFlags(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, yaml or json (the last two as ResourceSlices)")
	cmd.Flags().StringVar(&node, "node-name", "this-node", "name of the node, as it would stand in the slices")
	return cmd
}

func inventory(ctx context.Context, out io.Writer, describe func(context.Context) (machine.Machine, error), output, node string) error {
	write, ok := map[string]func(io.Writer, machine.Machine, string) error{
		"table": writeTable, "yaml": writeYAML, "json": writeJSON,
	}[output]
	if !ok {
		return fmt.Errorf("--output: %q is not known: want table, yaml or json", output)
	}
	m, err := describe(ctx)
	if err != nil {
		return err
	}
	return write(out, m, node)
}

func writeTable(out io.Writer, m machine.Machine, _ string) error {
	fmt.Fprintf(out, "Driver %s, CUDA %s\n\n", m.Driver.Version, m.Driver.CUDA)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DEVICE\tPRODUCT\tMEMORY\tSMS\tMIG\tNUMA\tPCIE ROOT\tHEALTH\tUUID")
	for _, d := range m.Devices() {
		if d.Kind == machine.KindMonitor {
			continue // one a GPU, with nothing new to say
		}
		health := "ok"
		if !d.GPU.Health.OK() {
			health = string(d.GPU.Health.Reason)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%d\t%s\t%s\t%s\n", d.Name, d.GPU.ProductName, gib(d.GPU.Memory.Usable()),
			d.GPU.Multiprocessors, mig(d.GPU.MIG), d.GPU.Location.NUMANode, d.GPU.Location.PCIeRoot, health, d.GPU.UUID)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, gpu := range m.GPUs {
		if gpu.MIG.Enabled {
			fmt.Fprintf(out, "\n%s: in MIG mode, so it is not offered whole: `nvidia-smi -i %s -mig 0` turns that off\n", gpu.Address, gpu.Address)
		}
	}
	for _, f := range m.Faults {
		fmt.Fprintf(out, "\n%s: %s\n", f.Device, f.Message)
	}
	return nil
}

func gib(bytes uint64) string {
	if bytes == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

func mig(m machine.MIG) string {
	if !m.Capable {
		return "no"
	}
	if m.Enabled {
		return "on"
	}
	return "off"
}

func writeYAML(out io.Writer, m machine.Machine, node string) error {
	content, err := yaml.Marshal(slices(m, node))
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return err
}

func writeJSON(out io.Writer, m machine.Machine, node string) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(slices(m, node))
}

// slices is the list of ResourceSlices but for what the API server fills in.
func slices(m machine.Machine, node string) *resourceapi.ResourceSliceList {
	list := &resourceapi.ResourceSliceList{TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSliceList"}}
	published := catalog.Build(m, catalog.Options{}).Slices()
	for _, s := range published {
		list.Items = append(list.Items, resourceapi.ResourceSlice{
			TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"},
			Spec: resourceapi.ResourceSliceSpec{
				Driver:   catalog.DriverName,
				NodeName: &node,
				Pool:     resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(published))},
				Devices:  s.Devices, SharedCounters: s.Counters,
			},
		})
	}
	return list
}
