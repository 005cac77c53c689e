package description

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// clashes finds what two devices cannot share, and ports with two places.
func clashes(spec *simulator.Spec) []error {
	c := &clash{seen: map[string]string{}, parents: map[string]string{}}
	for _, g := range spec.GPUs {
		who := "gpus: " + g.Address.String()
		c.once("address", g.Address.String(), who)
		c.once("uuid", g.UUID, who)
		c.once("minor", fmt.Sprint(g.Minor), who)
		c.ports("gpus", g.Above)
	}
	for _, n := range spec.NICs {
		who := "nics: " + n.Address.String()
		c.once("address", n.Address.String(), who)
		for vf := range n.MaxVFs {
			c.once("address", simulator.VFAddress(n.Address, vf).String(), fmt.Sprintf("%s (its VF %d)", who, vf))
		}
		if n.RDMA != "" {
			c.once("rdma", n.RDMA, who)
		}
		for _, d := range n.Netdevs {
			c.once("netdevs name", d.Name, who)
			c.once("netdevs mac", d.MAC, who)
		}
		c.ports("nics", n.Above)
	}
	for address, who := range c.addresses() {
		if _, ok := c.parents[address]; ok {
			c.problems = append(c.problems, fmt.Errorf("%s is a device and a port above another one: change one", who))
		}
	}
	return c.problems
}

// clash looks at one device after the other.
type clash struct {
	seen     map[string]string // who has it, by what it is
	parents  map[string]string // of ports
	problems []error
}

// once lets who have a value that nobody else has.
func (c *clash) once(what, value, who string) {
	if other, ok := c.seen[what+" "+value]; ok {
		c.problems = append(c.problems, fmt.Errorf("%s and %s have the same %s %s: change one", other, who, what, value))
		return
	}
	c.seen[what+" "+value] = who
}

func (c *clash) ports(list string, above []string) {
	for i, port := range above[1:] {
		if parent, ok := c.parents[port]; ok && parent != above[i] {
			c.problems = append(c.problems, fmt.Errorf("%s: port %s is below both %s and %s: change one of the above fields",
				list, port, parent, above[i]))
		}
		c.parents[port] = above[i]
	}
}

// addresses are those of devices, in order.
func (c *clash) addresses() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, key := range slices.Sorted(maps.Keys(c.seen)) {
			if address, ok := strings.CutPrefix(key, "address "); ok && !yield(address, c.seen[key]) {
				return
			}
		}
	}
}
