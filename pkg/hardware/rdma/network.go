package rdma

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/sysfs"
)

// network is the host's network at one moment.
type network struct {
	links  map[string]kernel.Link // by name
	byID   map[int]kernel.Link
	uplink map[int]string // why, by index
	routes []kernel.Route
	// exclusive says that RDMA devices belong to one namespace each.
	exclusive bool
}

// look reads the host's network. Interfaces' drivers are asked under one lock of the
// kernel's, so that a card that hangs holds up all.
func (n *NICs) look() (*network, error) {
	var found *network
	err := n.calls.Do("the host's network", func() error {
		host, err := n.kernel.Host()
		if err != nil {
			return err
		}
		defer host.Close()
		seen, err := survey(host, n.options.NodeAddresses)
		if err == nil {
			seen.exclusive, err = host.RDMAExclusive()
		}
		if err == nil {
			found = seen
		}
		return err
	})
	if err != nil {
		return nil, failure.New(failure.Unreachable, "reading the host's network interfaces and routes: %w", err)
	}
	return found, nil
}

func survey(host kernel.Namespace, node []netip.Addr) (*network, error) {
	links, err := host.Links()
	if err != nil {
		return nil, err
	}
	w := &network{links: map[string]kernel.Link{}, byID: map[int]kernel.Link{}, uplink: map[int]string{}}
	for _, l := range links {
		w.links[l.Name], w.byID[l.Index] = l, l
	}
	if err := errors.Join(w.routed(host), w.addressed(host, node)); err != nil {
		return nil, err
	}
	w.spread()
	return w, nil
}

// link of an interface that sysfs has, which was looked at later: it may have been renamed
// meanwhile, and is called then what sysfs says. False where it was not on the host.
func (w *network) link(tree *sysfs.Tree, netdev string) (kernel.Link, bool) {
	l, here := w.links[netdev]
	if !here {
		l, here = w.byID[tree.Index(netdev)]
		l.Name = netdev
	}
	return l, here
}

// routed finds the links that default routes go through.
func (w *network) routed(host kernel.Namespace) (err error) {
	if w.routes, err = host.Routes(); err != nil {
		return err
	}
	tables, err := host.DefaultTables()
	if err != nil {
		return err
	}
	for _, r := range w.routes {
		if l, ok := w.byID[r.Link]; ok && isDefault(r) && slices.Contains(tables, mainIfZero(r.Table)) {
			w.uplink[l.Index] = "the default route goes through " + l.Name
		}
	}
	return nil
}

// addressed finds the links that have an address of the node's.
func (w *network) addressed(host kernel.Namespace, node []netip.Addr) error {
	if len(node) == 0 {
		return nil
	}
	addresses, err := host.Addresses()
	if err != nil {
		return err
	}
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.Address)
		l, ok := w.byID[a.Link]
		if err == nil && ok && slices.Contains(node, prefix.Addr()) {
			w.uplink[l.Index] = fmt.Sprintf("the node's address %s is that of %s", prefix.Addr(), l.Name)
		}
	}
	return nil
}

func isDefault(r kernel.Route) bool { return strings.HasSuffix(r.To, "/0") }

// mainIfZero is a table's number as rules have it (linux/rtnetlink.h, RT_TABLE_MAIN).
func mainIfZero(table int) int {
	if table == 0 {
		return 254
	}
	return table
}

// spread makes uplinks of all that an uplink is made of, or that is made of one.
func (w *network) spread() {
	for again := true; again; {
		again = false
		for _, l := range w.byID {
			for _, other := range []int{l.Master, l.Lower} {
				again = w.infect(l.Index, other) || w.infect(other, l.Index) || again
			}
		}
	}
}

// infect makes an uplink of one link where another is. A pair of veths is two ends, and
// neither is made of the other.
func (w *network) infect(one, by int) bool {
	why, is := w.uplink[by]
	_, already := w.uplink[one]
	l, exists := w.byID[one]
	other, known := w.byID[by]
	if !is || already || !exists || !known || l.Kind == veth && other.Kind == veth {
		return false
	}
	root, _, _ := strings.Cut(why, ", which ")
	w.uplink[one] = fmt.Sprintf("%s, which %s belongs to", root, l.Name)
	return true
}

// veth is the kind of virtual interface that comes in pairs (veth(4)).
const veth = "veth"

// withheld says why an interface's card is not offered; empty: it is.
func (w *network) withheld(l kernel.Link) string {
	if why, is := w.uplink[l.Index]; is {
		return why + ": it connects the node, and stays with it"
	}
	if master, ok := w.byID[l.Master]; ok {
		return fmt.Sprintf("%s is part of %s: take it out of there to have it offered", l.Name, master.Name)
	}
	return ""
}

// above are the names of what is on top of an interface, or has it as a part.
func (w *network) above(l kernel.Link) []string {
	var names []string
	for _, other := range w.byID {
		if other.Index == l.Master || other.Lower == l.Index && other.Kind != veth {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	return names
}
