package main

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// shapes are the profiles that GPUs of one model have in common.
type shapes struct {
	Product  string  `json:"product"`
	GPUs     []shape `json:"gpus"`
	Profiles []row   `json:"profiles"`
}

// shape is one GPU.
type shape struct {
	Name string `json:"name"`
	// Partitions says whether any are offered, in words where not.
	Partitions string `json:"partitions"`
}

// row is one profile; Memory is in bytes, Most how many an empty GPU has room for.
type row struct {
	Name            string              `json:"name"`
	Memory          uint64              `json:"memory"`
	ComputeSlices   int                 `json:"computeSlices"`
	Multiprocessors int                 `json:"multiprocessors"`
	Engines         machine.Engines     `json:"engines"`
	Placements      []machine.Placement `json:"placements"`
	Most            int                 `json:"most"`
}

// shapesOf groups the machine's GPUs, in their order, by product and profiles.
func shapesOf(m *machine.Machine) []shapes {
	groups := []shapes{}
	for i := range m.GPUs {
		gpu := &m.GPUs[i]
		rows := rowsOf(&gpu.MIG)
		at := slices.IndexFunc(groups, func(g shapes) bool { return g.Product == gpu.ProductName && reflect.DeepEqual(g.Profiles, rows) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, shapes{Product: gpu.ProductName, Profiles: rows})
		}
		groups[at].GPUs = append(groups[at].GPUs, shape{gpu.Name(), offer(gpu)})
	}
	return groups
}

// rowsOf lists the profiles, the small before the large.
func rowsOf(m *machine.MIG) []row {
	rows := []row{}
	for i := range m.Profiles {
		p := &m.Profiles[i]
		rows = append(rows, row{p.Name, p.Memory, p.ComputeSlices, p.Multiprocessors, p.Engines, p.Placements, m.Most(p)})
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.ComputeSlices, b.ComputeSlices), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

func offer(gpu *machine.GPU) string {
	switch {
	case !gpu.MIG.Capable:
		return "it cannot be partitioned"
	case len(gpu.MIG.Profiles) == 0 && gpu.MIG.Enabled:
		return "the driver tells no profiles: it wants privileges (the chart's gpuAccess: privileged)"
	case len(gpu.MIG.Profiles) == 0:
		return "the driver tells no profiles: it wants privileges (the chart's gpuAccess: privileged), or MIG mode on: " +
			gpu.MIG.HowToSwitch("ADDRESS", 1)
	case !gpu.MIG.Enabled && !gpu.MIG.OnDemand:
		return "MIG mode is off, and takes a reset: " + gpu.MIG.HowToSwitch("ADDRESS", 1)
	case len(gpu.Partitions()) == 0:
		return "what exists leaves no room"
	}
	return "offered"
}

// offers has a line for all GPUs of which the same is to be said.
func (g *shapes) offers() []string {
	var lines []string
	for i := 0; i < len(g.GPUs); {
		var names []string
		what := g.GPUs[i].Partitions
		for ; i < len(g.GPUs) && g.GPUs[i].Partitions == what; i++ {
			names = append(names, g.GPUs[i].Name)
		}
		lines = append(lines, strings.Join(names, " ")+": "+what)
	}
	return lines
}

func writeProfileTable(out io.Writer, what seen, _ string) error {
	if len(what.published.GPUs) == 0 {
		fmt.Fprintln(out, "There are no GPUs.")
		return writeFaults(out, &what.published)
	}
	for i, group := range shapesOf(&what.published) {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, group.Product)
		for _, line := range group.offers() {
			fmt.Fprintln(out, "  "+line)
		}
		if len(group.Profiles) == 0 {
			continue
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "  PROFILE\tMEMORY\tCOMPUTE SLICES\tSMS\tCOPY\tDECODERS\tENCODERS\tJPEG\tOFA\tPLACEMENTS\tAT MOST")
		for _, p := range group.Profiles {
			e := p.Engines
			fmt.Fprintf(table, "  %s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%d\n", p.Name, gib(p.Memory), p.ComputeSlices, p.Multiprocessors,
				e.Copy, e.Decoders, e.Encoders, e.JPEG, e.OFA, places(p.Placements), p.Most)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// places is "{0,2,4}:2", starts and size in memory units, as nvidia-smi has it.
func places(placements []machine.Placement) string {
	starts := map[int][]string{}
	var sizes []int
	for _, at := range placements {
		if _, ok := starts[at.Size]; !ok {
			sizes = append(sizes, at.Size)
		}
		starts[at.Size] = append(starts[at.Size], fmt.Sprint(at.Start))
	}
	var found []string
	for _, size := range sizes {
		found = append(found, fmt.Sprintf("{%s}:%d", strings.Join(starts[size], ","), size))
	}
	return strings.Join(found, " ")
}

func writeProfileYAML(out io.Writer, what seen, _ string) error {
	return printYAML(out, shapesOf(&what.published))
}

func writeProfileJSON(out io.Writer, what seen, _ string) error {
	return printJSON(out, shapesOf(&what.published))
}
