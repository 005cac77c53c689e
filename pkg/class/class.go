// Package class says what a PartitionClass means: which DeviceClass the cluster has for
// it, and what nodes publish for it. It is pure, and used by the controller, by the
// agents, and by whoever checks classes.
package class

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Class is a PartitionClass that was found to be valid.
type Class struct {
	// Name of the class and of its DeviceClass.
	Name string
	// Kind of the devices that it takes.
	Kind machine.Kind
	// Published is false where the class is retired: nothing is published for it, and
	// its DeviceClass takes no device.
	Published bool

	// code stands for what the class asks that devices do not tell by other attributes:
	// the labels of their node and, of a partition, the memory of its GPU. Classes that
	// ask the same have the same code; empty where there is nothing of it.
	code     string
	spec     *v1alpha1.PartitionClassSpec
	products *regexp.Regexp // nil: any
	nodes    labels.Selector
}

// Compile reads a class. What is wrong with it is said with field, value and cure.
func Compile(c *v1alpha1.PartitionClass) (*Class, error) {
	if err := c.Validate().ToAggregate(); err != nil {
		return nil, err
	}
	compiled := &Class{
		Name: c.Name, Kind: kindOf(&c.Spec.Shape), Published: c.Spec.Published == nil || *c.Spec.Published,
		spec: &c.Spec, nodes: labels.Everything(),
	}
	if patterns := c.Spec.Hardware.Products; len(patterns) > 0 {
		compiled.products = regexp.MustCompile(expressionOf(patterns)) // all that is not * or ? is quoted
	}
	if selector := c.Spec.Hardware.NodeSelector; selector != nil {
		nodes, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			return nil, fmt.Errorf("spec.hardware.nodeSelector: %w", err)
		}
		compiled.nodes = nodes
	}
	compiled.code = compiled.conditionCode()
	return compiled, nil
}

func kindOf(s *v1alpha1.Shape) machine.Kind {
	switch {
	case s.MIG != nil:
		return machine.KindMIG
	case s.MPS != nil:
		return machine.KindMPS
	case s.TimeSlice != nil:
		return machine.KindTimeSlice
	case s.Pair != nil:
		return machine.KindPair
	case s.NIC != nil:
		return machine.KindNIC
	case s.RDMA != nil:
		return machine.KindRDMA
	case s.VF != nil:
		return machine.KindVF
	}
	return machine.KindGPU
}

// expressionOf patterns is one regular expression, of RE2 as Go and CEL have it.
func expressionOf(patterns []string) string {
	wildcards := strings.NewReplacer(`\*`, `.*`, `\?`, `.`)
	expressions := make([]string, len(patterns))
	for i, p := range patterns {
		expressions[i] = wildcards.Replace(regexp.QuoteMeta(p))
	}
	return "^(" + strings.Join(expressions, "|") + ")$"
}

// size is what each share of the class has; false where a claim says how much it wants.
func (c *Class) size() (machine.Size, bool) {
	size := machine.Size{Name: c.Name, Kind: c.Kind}
	switch mps, turns := c.spec.Shape.MPS, c.spec.Shape.TimeSlice; {
	case mps != nil && mps.Memory != nil:
		size.Memory, size.Compute = bytesOf(mps.Memory), int(mps.Compute)
	case turns != nil && (turns.Memory != nil || turns.Clients != 0):
		size.Memory, size.Clients = bytesOf(turns.Memory), int(turns.Clients)
	default:
		return size, false
	}
	return size, true
}

func bytesOf(q *resource.Quantity) uint64 {
	if q == nil {
		return 0
	}
	return uint64(q.Value())
}

// NamesProduct says whether one of the class's patterns, if it has any, matches the name of
// a product.
func (c *Class) NamesProduct(name string) bool {
	return c.products == nil || c.products.MatchString(name)
}

// takes says whether the class is for a GPU, wherever it is.
func (c *Class) takes(g *machine.GPU) bool {
	hardware := &c.spec.Hardware
	return c.NamesProduct(g.ProductName) &&
		(len(hardware.Architectures) == 0 || slices.Contains(hardware.Architectures, g.Architecture)) &&
		g.Memory.Usable() >= bytesOf(hardware.MinMemory)
}

// conditionCode is a hash of what code stands for.
func (c *Class) conditionCode() string {
	var asked []string
	if !c.nodes.Empty() {
		asked = append(asked, "nodes "+c.nodes.String())
	}
	if c.Kind == machine.KindMIG && c.spec.Hardware.MinMemory != nil {
		asked = append(asked, fmt.Sprintf("memory %d", bytesOf(c.spec.Hardware.MinMemory)))
	}
	if len(asked) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(asked, "\n")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:codeLength])
}
