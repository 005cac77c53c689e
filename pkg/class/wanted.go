package class

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Wanted is what the classes ask of one node: which shapes of its GPUs to publish, and
// what to say of them. Classes that are being deleted count as long as they exist.
type Wanted struct {
	classes    []*Class // for this node, by name
	partitions bool     // one of them is for partitions of a GPU that is here
	// sizes of all classes, also of those that are for other nodes or retired: claims
	// of before may still have some.
	sizes []machine.Size
}

// WantedOn reads the classes for a node with those labels and GPUs. Classes that are
// not valid are left out and named by the error; the others count all the same.
func WantedOn(classes []v1alpha1.PartitionClass, nodeLabels map[string]string, gpus []machine.GPU) (*Wanted, error) {
	wanted := &Wanted{}
	var errs []error
	for i := range classes {
		class, err := Compile(&classes[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("PartitionClass %s: %w", classes[i].Name, err))
			continue
		}
		if size, ok := class.size(); ok {
			wanted.sizes = append(wanted.sizes, size)
		}
		if class.Published && class.nodes.Matches(labels.Set(nodeLabels)) {
			wanted.classes = append(wanted.classes, class)
			here := func(g machine.GPU) bool { return class.takes(&g) }
			wanted.partitions = wanted.partitions || class.Kind == machine.KindMIG && slices.ContainsFunc(gpus, here)
		}
	}
	slices.SortFunc(wanted.classes, func(a, b *Class) int { return cmp.Compare(a.Name, b.Name) })
	return wanted, errors.Join(errs...)
}

// Sizes are the sizes of share that a GPU is to be offered in, beside the shares of
// any size.
func (w *Wanted) Sizes(g *machine.GPU) []machine.Size {
	var sizes []machine.Size
	for _, c := range w.classes {
		if size, ok := c.size(); ok && c.takes(g) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// Partition says whether partitions of that profile of the GPU are to be offered: all
// are, unless a class is for partitions of a GPU of this node.
func (w *Wanted) Partition(g *machine.GPU, p *machine.MIGProfile) bool {
	if !w.partitions {
		return true
	}
	return slices.ContainsFunc(w.classes, func(c *Class) bool { return c.takes(g) && c.partition(g, p) })
}

// partition says whether the class is for that profile of the GPU.
func (c *Class) partition(g *machine.GPU, p *machine.MIGProfile) bool {
	mig := c.spec.Shape.MIG
	switch {
	case mig == nil:
		return false
	case mig.Memory != nil:
		smallest, ok := g.MIG.Smallest(bytesOf(mig.Memory))
		return ok && smallest == p
	}
	return p.Name == mig.Profile
}

// Conditions is the value of AttributeConditions for devices of a kind of the GPU. With
// more than an attribute has room for, the classes that come last by name get no such
// devices, and are returned; the value is right for the others.
func (w *Wanted) Conditions(g *machine.GPU, k machine.Kind) (string, []*Unoffered) {
	return w.conditions(k, func(c *Class) bool {
		return k != machine.KindMIG || g.Memory.Usable() >= bytesOf(c.spec.Hardware.MinMemory)
	})
}

// NICConditions is Conditions for devices without a GPU.
func (w *Wanted) NICConditions(k machine.Kind) (string, []*Unoffered) {
	return w.conditions(k, func(*Class) bool { return true })
}

func (w *Wanted) conditions(k machine.Kind, holds func(*Class) bool) (string, []*Unoffered) {
	var codes []string
	var without []*Unoffered
	for _, c := range w.classes {
		switch {
		case c.code == "" || c.Kind != k || c.sized() || !holds(c) || slices.Contains(codes, c.code):
		case len(codes) == maxCodes:
			without = append(without, unoffered(c.Name, "there are more than %d different node selectors and memories for devices of type %s on this node, of which it comes after the first by name, and so gets none: let some classes ask the same", maxCodes, k))
		default:
			codes = append(codes, c.code)
		}
	}
	if len(codes) == 0 {
		return "", without
	}
	return "," + strings.Join(codes, ",") + ",", without
}
