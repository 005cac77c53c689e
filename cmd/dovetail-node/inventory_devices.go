package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// writeTable has a line a GPU and a line a NIC: partitions are too many for people.
func writeTable(out io.Writer, what seen, _ string) error {
	m := &what.published
	if len(m.GPUs) > 0 || len(m.NICs) == 0 {
		if err := writeGPUs(out, what); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if err := writeNetwork(out, m); err != nil {
		return err
	}
	if remnants := what.pool().Remnants; len(remnants) > 0 {
		fmt.Fprintf(out, "\nClaims have these, which are not offered any more; what is left of them is nobody else's until they are released:\n  %s\n", strings.Join(remnants, " "))
	}
	for i := range m.GPUs {
		if gpu := &m.GPUs[i]; gpu.MIG.Enabled {
			fmt.Fprintf(out, "\n%s: in MIG mode, so it is not offered whole; to switch it off: %s\n", gpu.Address, gpu.MIG.HowToSwitch(gpu.Address.String(), 0))
		}
	}
	return writeFaults(out, m)
}

// writeFaults has a paragraph for each device that is not offered, or not fully.
func writeFaults(out io.Writer, m *machine.Machine) error {
	for _, f := range m.AllFaults() {
		if _, err := fmt.Fprintf(out, "\n%s: %s\n", f.Device, f.Message); err != nil {
			return err
		}
	}
	return nil
}

// writeNetwork has a line a NIC, and says how many pairs there are.
func writeNetwork(out io.Writer, m *machine.Machine) error {
	t := topologyOf(m)
	if err := writeTopologyNICs(out, t); err != nil || len(t.Pairs) == 0 {
		return err
	}
	_, err := fmt.Fprintf(out, "\nPairs of a GPU and a NIC: %d; dovetail-node topology shows them\n", len(t.Pairs))
	return err
}

func writeGPUs(out io.Writer, what seen) error {
	m := &what.published
	fmt.Fprintf(out, "Driver %s, CUDA %s\n\n", m.Driver.Version, m.Driver.CUDA)
	claimed := false
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GPU\tPRODUCT\tMEMORY\tSMS\tMIG\tPARTITIONS\tNUMA\tPCIE ROOT\tHEALTH\tUUID")
	for i := range m.GPUs {
		gpu := &m.GPUs[i]
		now := gpu
		if found, ok := what.now.GPU(gpu.UUID); ok {
			now = found
		}
		exist := partitions(&now.MIG, &gpu.MIG)
		claimed = claimed || strings.Contains(exist, star)
		health := "ok"
		if !gpu.Health.OK() {
			health = string(gpu.Health.Reason)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\n", gpu.Name(), gpu.ProductName, gib(gpu.Memory.Usable()), gpu.Multiprocessors,
			mig(&now.MIG), exist, gpu.Location.NUMANode, gpu.Location.PCIeRoot, health, gpu.UUID)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if claimed {
		fmt.Fprintf(out, "\n%s made for a claim, and destroyed with it\n", star)
	}
	fmt.Fprintln(out)
	if err := writeShares(out, &what); err != nil {
		return err
	}
	writeLeftOut(out, &what)
	return nil
}

func gib(bytes uint64) string {
	if bytes == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

func mig(m *machine.MIG) string {
	if !m.Capable {
		return "no"
	}
	if m.Enabled {
		return "on"
	}
	return "off"
}

// star marks partitions that are there for claims.
const star = "*"

// partitions that exist: "3g.40gb@4". Those that are there for claims are not in
// what is published.
func partitions(now, published *machine.MIG) string {
	var found []string
	for i := range now.Instances {
		instance := &now.Instances[i]
		name := fmt.Sprintf("profile %d", instance.ProfileID)
		if p, ok := now.Profile(instance.ProfileID); ok {
			name = p.Name
		}
		mark := ""
		if !slices.ContainsFunc(published.Instances, func(other machine.GPUInstance) bool { return other.ID == instance.ID }) {
			mark = star
		}
		found = append(found, fmt.Sprintf("%s@%d%s", name, instance.Placement.Start, mark))
	}
	if len(found) == 0 {
		return "-"
	}
	return strings.Join(found, " ")
}

func writeYAML(out io.Writer, what seen, node string) error {
	return printYAML(out, resourceSlices(&what, node))
}

func writeJSON(out io.Writer, what seen, node string) error {
	return printJSON(out, resourceSlices(&what, node))
}

func printYAML(out io.Writer, value any) error {
	content, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return err
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// pool is what is published.
func (s *seen) pool() catalog.Pool {
	return catalog.Build(s.published, catalog.Options{Offer: s.offer, Held: s.claimed.Held})
}

// resourceSlices are what is published, but for what the API server fills in.
func resourceSlices(what *seen, node string) *resourceapi.ResourceSliceList {
	list := &resourceapi.ResourceSliceList{TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSliceList"}}
	published := what.pool().Slices()
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
