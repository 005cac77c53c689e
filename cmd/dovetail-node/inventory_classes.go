package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// writeLeftOut says which profiles no PartitionClass asks for, with a line for all GPUs
// of which the same is to be said, and what is there only because claims have it.
func writeLeftOut(out io.Writer, what *seen) {
	var gpus, leaving []string
	leftOut := map[string][]string{} // profiles, by GPU
	for _, d := range what.published.Devices() {
		switch presence := what.offer.Presence(d); {
		case presence == catalog.Leaving:
			leaving = append(leaving, d.Name)
		case presence == catalog.Absent && d.Partition != nil:
			gpu, profile := d.GPU.Name(), d.Partition.Profile.Name
			if leftOut[gpu] == nil {
				gpus = append(gpus, gpu)
			}
			if !slices.Contains(leftOut[gpu], profile) {
				leftOut[gpu] = append(leftOut[gpu], profile)
			}
		}
	}
	if len(gpus) > 0 {
		fmt.Fprintf(out, "\nPartitions that no PartitionClass (%s) asks for, and that are not published:\n", strings.Join(what.classes, ", "))
	}
	slices.Sort(gpus)
	for len(gpus) > 0 {
		profiles := strings.Join(leftOut[gpus[0]], " ")
		same := func(gpu string) bool { return strings.Join(leftOut[gpu], " ") == profiles }
		alike := slices.DeleteFunc(slices.Clone(gpus), func(gpu string) bool { return !same(gpu) })
		fmt.Fprintf(out, "  %s: %s\n", strings.Join(alike, " "), profiles)
		gpus = slices.DeleteFunc(gpus, same)
	}
	if len(leaving) > 0 {
		fmt.Fprintf(out, "\nNo PartitionClass asks for these any more; they go when their claims are released:\n  %s\n", strings.Join(leaving, " "))
	}
}
