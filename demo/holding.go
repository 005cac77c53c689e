package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	resourceapi "k8s.io/api/resource/v1"
)

// holding is what one Pod was given.
type holding struct {
	scenario       scenario
	namespace, pod string
	pieces         []piece
	took           time.Duration
}

// piece is a device that was given, by way of a DeviceClass.
type piece struct {
	resourceapi.Device
	class string
}

// text of an attribute; empty where the device has none.
func (p piece) text(attribute resourceapi.QualifiedName) string {
	if s := p.Attributes[attribute].StringValue; s != nil {
		return *s
	}
	return ""
}

// gpu is the GPU's model.
func (p piece) gpu() string { return strings.TrimPrefix(p.text("productName"), "NVIDIA ") }

// part is the GPU's model, and of a partition its profile.
func (p piece) part() string { return strings.TrimSpace(p.gpu() + " " + p.text("profile")) }

// nic is the NIC's model, and the RDMA device that NCCL knows it by.
func (p piece) nic() string { return strings.TrimSpace(p.text("model") + " " + p.text("rdmaDevice")) }

// kind of device, whatever its size: a GPU, a part of one, a NIC, or both.
func (p piece) kind() string {
	return strings.Join(slices.DeleteFunc([]string{p.part(), p.text("model")}, func(s string) bool { return s == "" }), " with ")
}

// what a device is: a GPU, or a part of one, with its memory; a NIC with its speed; or both.
func (p piece) what() string {
	var parts []string
	if part := p.part(); part != "" {
		memory := p.Capacity["memory"]
		parts = append(parts, fmt.Sprintf("%s, %.0f GiB", part, memory.Value.AsApproximateFloat64()/(1<<30)))
	}
	if model := p.text("model"); model != "" {
		nic := fmt.Sprintf("NIC %s, %d Gb/s", model, *p.Attributes["speed"].IntValue)
		if near := p.text("closeness"); near != "" {
			nic += ", " + near
		}
		parts = append(parts, nic)
	}
	return strings.Join(parts, " and ")
}

// describe tells of devices: their names, what they are, where they sit.
func describe(pieces []piece) string {
	names, kinds := all(pieces, func(p piece) string { return p.Name }), all(pieces, piece.what)
	text := strings.Join(names, " ")
	if len(kinds) == 1 {
		text += " (" + kinds[0] + ")"
	}
	return text + ", NUMA node " + strings.Join(all(pieces, piece.numa), " and ")
}

// numa is the NUMA node that a device is on; empty where it does not say.
func (p piece) numa() string {
	if n := p.Attributes["resource.kubernetes.io/numaNode"].IntValue; n != nil {
		return fmt.Sprint(*n)
	}
	return ""
}

// all that pieces say, each once.
func all(pieces []piece, say func(piece) string) []string {
	var words []string
	seen := map[string]bool{"": true}
	for _, p := range pieces {
		if word := say(p); !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

// table closes the demo: who held what, and by which class. It is no wider than 120.
func table(to io.Writer, held []holding) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  NO\tPOD\tCLASS\tDEVICE\tGPU\tNIC\tNUMA\tAFTER")
	for _, h := range held {
		cell := func(say func(piece) string) string { return shortened(all(h.pieces, say)) }
		fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%s\t%s\t%s\t%.1f s\n", number(h.scenario.file), h.pod,
			cell(func(p piece) string { return p.class }), cell(func(p piece) string { return p.Name }), cell(piece.gpu), cell(piece.nic),
			strings.Join(all(h.pieces, piece.numa), ", "), h.took.Seconds())
	}
	_ = w.Flush()
}

// shortened is the first, and how many more there are.
func shortened(words []string) string {
	switch len(words) {
	case 0:
		return "-"
	case 1:
		return words[0]
	}
	return fmt.Sprintf("%s +%d", words[0], len(words)-1)
}
