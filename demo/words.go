package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	resourceapi "k8s.io/api/resource/v1"
)

// width of the output.
const width = 100

// paragraph prints lines under a label; lines that are too long go on below.
func paragraph(label string, lines ...string) {
	for _, line := range lines {
		for _, part := range wrap(line, width-10) {
			fmt.Printf("  %-7s %s\n", label, part)
			label = ""
		}
	}
}

// wrap breaks a line at spaces.
func wrap(line string, width int) []string {
	var parts []string
	for len(line) > width {
		at := strings.LastIndexByte(line[:width], ' ')
		if at <= 0 {
			break
		}
		parts = append(parts, line[:at])
		line = "  " + line[at+1:]
	}
	return append(parts, line)
}

// dots lead from a title to what stands at the right edge.
func dots(title, right string) string {
	return strings.Repeat("·", max(3, width-len(title)-len(right)-2)) + " " + right
}

// describe tells of devices: their names, what they are, where they sit.
func describe(devices []resourceapi.Device) string {
	var names []string
	kinds := map[string]int{}
	var kind string
	for _, d := range devices {
		names = append(names, d.Name)
		kind = what(d)
		kinds[kind]++
	}
	text := strings.Join(names, " ")
	if len(kinds) == 1 {
		text += " (" + kind + ")"
	}
	return text + ", NUMA node " + numa(devices)
}

// what a device is: a GPU with its memory, a NIC with its speed, or both.
func what(d resourceapi.Device) string {
	var parts []string
	if product := d.Attributes["productName"].StringValue; product != nil {
		memory := d.Capacity["memory"]
		parts = append(parts, fmt.Sprintf("%s, %.0f GiB", *product, memory.Value.AsApproximateFloat64()/(1<<30)))
	}
	if model := d.Attributes["model"].StringValue; model != nil {
		nic := fmt.Sprintf("NIC %s, %d Gb/s", *model, *d.Attributes["speed"].IntValue)
		if near := d.Attributes["closeness"].StringValue; near != nil {
			nic += ", " + *near
		}
		parts = append(parts, nic)
	}
	return strings.Join(parts, " and ")
}

// numa are the NUMA nodes that devices are on.
func numa(devices []resourceapi.Device) string {
	var nodes []string
	seen := map[int64]bool{}
	for _, d := range devices {
		if n := d.Attributes["resource.kubernetes.io/numaNode"].IntValue; n != nil && !seen[*n] {
			seen[*n] = true
			nodes = append(nodes, fmt.Sprint(*n))
		}
	}
	return strings.Join(nodes, " and ")
}

// table closes the demo: who held what.
func table(held []holding) {
	fmt.Println("\nWho held what")
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  SCENARIO\tPOD\tCOUNT\tNUMA\tSTARTED IN\tDEVICES")
	for _, h := range held {
		var names []string
		for _, d := range h.devices {
			names = append(names, d.Name)
		}
		fmt.Fprintf(w, "  %s\t%s\t%d\t%s\t%.1f s\t%s\n", h.scenario, h.pod, len(h.devices), numa(h.devices), h.took.Seconds(), shortened(names))
	}
	_ = w.Flush()
}

func shortened(names []string) string {
	if len(names) > 2 {
		return names[0] + " … " + names[len(names)-1]
	}
	return strings.Join(names, " ")
}

// indented is for what others print: it stands below the headline.
type indented struct{ to io.Writer }

func (w indented) Write(b []byte) (int, error) {
	text := strings.TrimRight(string(b), "\n")
	if before, _, ok := strings.Cut(text, "\nuse it:"); ok {
		text = strings.TrimRight(before, "\n")
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			if _, err := fmt.Fprintln(w.to, "  "+line); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}
