package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// key is the same for devices of one model: type and memory first, for the order.
func key(d *resourceapi.Device) string {
	var b strings.Builder
	kind := d.Attributes["type"].StringValue
	if kind != nil {
		b.WriteString(*kind)
	}
	memory := d.Capacity["memory"].Value
	fmt.Fprintf(&b, "\x00%020d\x00%t", max(0, memory.Value()), d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations)
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		if !individual[name] {
			b.WriteString("\x00" + string(name) + "=")
			writeAttribute(&b, d.Attributes[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		b.WriteString("\x00" + string(name) + "=")
		writeCapacity(&b, d.Capacity[name])
	}
	return b.String()
}

func writeAttribute(b *strings.Builder, a resourceapi.DeviceAttribute) {
	switch {
	case a.StringValue != nil:
		b.WriteString(*a.StringValue)
	case a.VersionValue != nil:
		b.WriteString(*a.VersionValue)
	case a.BoolValue != nil:
		fmt.Fprint(b, *a.BoolValue)
	case a.IntValue != nil:
		fmt.Fprint(b, *a.IntValue)
	default: // lists
		fmt.Fprint(b, a.StringValues, a.VersionValues, a.BoolValues, a.IntValues)
	}
}

func writeCapacity(b *strings.Builder, c resourceapi.DeviceCapacity) {
	b.WriteString(c.Value.String())
	p := c.RequestPolicy
	if p == nil {
		return
	}
	writeQuantities(b, p.Default)
	for i := range p.ValidValues {
		writeQuantities(b, &p.ValidValues[i])
	}
	if r := p.ValidRange; r != nil {
		writeQuantities(b, r.Min, r.Max, r.Step)
	}
}

func writeQuantities(b *strings.Builder, quantities ...*resource.Quantity) {
	for _, q := range quantities {
		b.WriteByte('|')
		if q != nil {
			b.WriteString(q.String())
		}
	}
}
