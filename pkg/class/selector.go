package class

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// AttributeConditions names what holds of a device that its other attributes do not
// tell: the codes of conditions of classes, with commas before, between and after.
const AttributeConditions = catalog.AttributeClassConditions

// Of a code, 30 bits: among a hundred different conditions two are the same once in
// 200,000 clusters. As many codes as an attribute's value has room for.
const (
	codeLength = 6
	maxCodes   = 9 // of 7 characters with their commas, in 64
)

// AttributeNames are the attributes, in the driver's domain, that selectors of classes
// read; CapacityName is the one capacity.
var AttributeNames = []string{
	"type", "partitionClass", "productName", "model", "architecture", "profile", "nextSmallerMemory",
	"closeness", "lossless", AttributeConditions,
}

// CapacityName is the capacity that selectors of classes read.
const CapacityName = "memory"

const (
	attributes = `device.attributes["` + catalog.DriverName + `"].`
	capacity   = `device.capacity["` + catalog.DriverName + `"].`
)

// nothing is the selector of a class that is retired.
const nothing = "false"

// selector is one CEL expression. The type is tested first: what comes after it every
// device of that type has, or it is read as optional.
func (c *Class) selector() string {
	if !c.Published {
		return nothing
	}
	terms := []string{
		fmt.Sprintf(`device.driver == %q`, catalog.DriverName),
		fmt.Sprintf(attributes+`type == %q`, c.Kind),
	}
	terms = append(terms, c.ofShape()...)
	terms = append(terms, c.ofHardware()...)
	if c.code != "" && !c.sized() {
		// Not orValue, of whose result the API server does not know how long it is.
		named := attributes + AttributeConditions
		terms = append(terms, fmt.Sprintf(`has(%s)`, named), fmt.Sprintf(`%s.contains(",%s,")`, named, c.code))
	}
	return strings.Join(terms, " && ")
}

// sized classes have devices of their own, which are published only where the class is
// for the node and the GPU.
func (c *Class) sized() bool {
	_, sized := c.size()
	return sized
}

func (c *Class) ofShape() []string {
	switch shape := &c.spec.Shape; {
	case c.Kind.SharesGPU():
		own := ""
		if c.sized() {
			own = c.Name
		}
		return []string{fmt.Sprintf(attributes+`partitionClass == %q`, own)}
	case shape.MIG != nil && shape.MIG.Memory != nil:
		// The next smaller profile has less. An agent of an earlier version does not
		// say: its partitions are not taken, since they may be far too large.
		bytes := shape.MIG.Memory.Value()
		return []string{
			memoryOf(bytes),
			fmt.Sprintf(attributes+`?nextSmallerMemory.orValue(%d) < %d`, bytes, bytes),
		}
	case shape.MIG != nil:
		return []string{fmt.Sprintf(attributes+`profile == %q`, shape.MIG.Profile)}
	case shape.Pair != nil:
		if shape.Pair.Closeness != "" {
			return []string{fmt.Sprintf(attributes+`?closeness.orValue("") in %s`, quoted(near(shape.Pair.Closeness)))}
		}
	}
	return nil
}

// lossless classes take only NICs, and pairs with NICs, that have priority flow control.
func (c *Class) lossless() bool {
	shape := &c.spec.Shape
	return shape.Pair != nil && shape.Pair.Lossless || slices.ContainsFunc(
		[]*v1alpha1.NICShape{shape.NIC, shape.RDMA, shape.VF},
		func(n *v1alpha1.NICShape) bool { return n != nil && n.Lossless })
}

func (c *Class) ofHardware() []string {
	hardware := &c.spec.Hardware
	var terms []string
	if c.products != nil {
		name := "productName"
		if c.ofNIC() {
			name = "model"
		}
		terms = append(terms, fmt.Sprintf(attributes+`%s.matches(%s)`, name, strconv.QuoteToASCII(c.products.String())))
	}
	if len(hardware.Architectures) > 0 {
		terms = append(terms, fmt.Sprintf(attributes+`architecture in %s`, quoted(hardware.Architectures)))
	}
	if hardware.MinMemory != nil && c.Kind != machine.KindMIG { // a partition does not tell its GPU's
		terms = append(terms, memoryOf(hardware.MinMemory.Value()))
	}
	if c.lossless() {
		terms = append(terms, attributes+`?lossless.orValue(false)`)
	}
	return terms
}

func (c *Class) ofNIC() bool {
	return c.Kind == machine.KindNIC || c.Kind == machine.KindRDMA || c.Kind == machine.KindVF
}

func memoryOf(bytes int64) string {
	return fmt.Sprintf(capacity+CapacityName+`.compareTo(quantity("%d")) >= 0`, bytes)
}

// near are the closenesses that are at least as close, and what an administrator has
// declared to be.
func near(most v1alpha1.Closeness) []string {
	all := v1alpha1.Closenesses
	names := []string{"declared"}
	for _, c := range all[:slices.Index(all, most)+1] {
		names = append(names, string(c))
	}
	return names
}

func quoted(values []string) string {
	literals := make([]string, len(values))
	for i, v := range values {
		literals[i] = strconv.QuoteToASCII(v)
	}
	return "[" + strings.Join(literals, ", ") + "]"
}
