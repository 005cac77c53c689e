package class

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// String is what the class takes, in words: "partitions 1g.10gb of GPUs NVIDIA H100*".
func (c *Class) String() string {
	words := []string{c.shape()}
	hardware := &c.spec.Hardware
	if len(hardware.Products) > 0 {
		words = append(words, "of "+strings.Join(hardware.Products, " or "))
	}
	if len(hardware.Architectures) > 0 {
		words = append(words, "of architecture "+strings.Join(hardware.Architectures, " or "))
	}
	if hardware.MinMemory != nil {
		words = append(words, "on GPUs with at least "+written(hardware.MinMemory)+" of memory")
	}
	if !c.nodes.Empty() {
		words = append(words, "on nodes with labels "+c.nodes.String())
	}
	return strings.Join(words, " ")
}

func (c *Class) shape() string {
	shape := &c.spec.Shape
	switch {
	case shape.MIG != nil && shape.MIG.Memory != nil:
		return "partitions with at least " + written(shape.MIG.Memory) + " of memory"
	case shape.MIG != nil:
		return "partitions " + shape.MIG.Profile
	case shape.MPS != nil && shape.MPS.Memory != nil:
		return "shares by MPS of " + written(shape.MPS.Memory) + " of memory"
	case shape.TimeSlice != nil && shape.TimeSlice.Memory != nil:
		return "time slices of " + written(shape.TimeSlice.Memory) + " of memory"
	case c.sized():
		return fmt.Sprintf("time slices for %d claims a GPU", shape.TimeSlice.Clients)
	case shape.Pair != nil && shape.Pair.Closeness != "":
		return fmt.Sprintf("pairs of closeness %s%s", shape.Pair.Closeness, c.losslessly())
	case c.Kind == machine.KindGPU:
		return "whole GPUs"
	}
	return fmt.Sprintf("devices of type %s%s", c.Kind, c.losslessly())
}

// written is a quantity's text. It is made of a copy: String keeps what it has made in the
// quantity itself, and the class's is somebody's cache's.
func written(q *resource.Quantity) string {
	own := q.DeepCopy()
	return own.String()
}

func (c *Class) losslessly() string {
	if c.lossless() {
		return " with lossless NICs"
	}
	return ""
}
