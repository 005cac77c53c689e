package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// topologyDir is where the agent keeps the files that NCCL reads.
const topologyDir = PluginDir + "/nccl"

// Interface is a network interface in a node's own network namespace, as `ip -json
// address` has it.
type Interface struct {
	Name      string   `json:"ifname"`
	MAC       string   `json:"address"`
	MTU       int      `json:"mtu"`
	Flags     []string `json:"flags"`
	Addresses []struct {
		Local  string `json:"local"`
		Length int    `json:"prefixlen"`
	} `json:"addr_info"`
}

// Up says whether the administrator has it up.
func (i *Interface) Up() bool { return slices.Contains(i.Flags, "UP") }

// Prefixes are its addresses, without those that the kernel makes itself.
func (i *Interface) Prefixes() []string {
	var all []string
	for _, a := range i.Addresses {
		if parsed, err := netip.ParseAddr(a.Local); err != nil || !parsed.IsLinkLocalUnicast() {
			all = append(all, fmt.Sprintf("%s/%d", a.Local, a.Length))
		}
	}
	slices.Sort(all)
	return all
}

// Route is one of a node, as `ip -json route` has it.
type Route struct {
	To      string `json:"dst"`
	Via     string `json:"gateway"`
	Through string `json:"dev"`
}

// Interfaces are those of a node's own network namespace.
func (c *Cluster) Interfaces(ctx context.Context, node string) ([]Interface, error) {
	out, err := c.Exec(ctx, node, "ip", "-json", "address")
	if err != nil {
		return nil, err
	}
	var all []Interface
	err = json.Unmarshal([]byte(out), &all)
	return all, err
}

// listNetwork prints the interfaces and routes of the node's network namespace.
const listNetwork = "ip -json address\necho ==\nip -json route\n"

func (s *Snapshot) parseNetwork(interfaces, routes string) error {
	if err := json.Unmarshal([]byte(interfaces), &s.Interfaces); err != nil {
		return fmt.Errorf("the network interfaces: %w", err)
	}
	if err := json.Unmarshal([]byte(routes), &s.Routes); err != nil {
		return fmt.Errorf("the routes: %w", err)
	}
	return nil
}

// network: the interfaces of all NICs, and of their virtual functions, that no claim has
// reserved are at home, as the machine has them after boot.
func (c *comparison) network(steps []made) {
	reserved := map[machine.Address]bool{}
	for _, s := range steps {
		if s.Kind == plan.ReserveNIC && s.Reserved != nil {
			reserved[s.Reserved.Function] = true
		}
	}
	for _, f := range c.Machine.Functions() {
		if reserved[f.Address] {
			continue
		}
		for _, want := range netdevsOf(f) {
			c.atHome(f, want)
		}
		if f.RDMANamespace != "" {
			c.differ("the RDMA device of %s is in %s, and no claim has it", f, f.RDMANamespace)
		}
	}
}

// netdevsOf are a function's interfaces as they are after boot; a virtual function's name
// is its NIC's, up to the port, and its index.
func netdevsOf(f simulator.Function) []simulator.NetdevSpec {
	if f.VF < 0 {
		return f.NIC.Spec.Netdevs
	}
	var all []simulator.NetdevSpec
	for i := range f.Netdevs {
		base := f.NIC.Spec.Netdevs[i].Name
		if at := strings.LastIndex(base, "np"); at > 0 {
			base = base[:at]
		}
		all = append(all, simulator.NetdevSpec{
			Name: fmt.Sprintf("%sv%d", base, f.VF), MAC: simulator.MAC(f.NIC.Machine, f.Address, i), MTU: 1500, Down: true,
		})
	}
	return all
}

func (c *comparison) atHome(f simulator.Function, want simulator.NetdevSpec) {
	i := slices.IndexFunc(c.Interfaces, func(i Interface) bool { return i.MAC == want.MAC })
	if i < 0 {
		c.differ("the interface of %s (%s, %s) is not on the node, and no claim has it", f, want.Name, want.MAC)
		return
	}
	is := &c.Interfaces[i]
	if is.Name != want.Name {
		c.differ("the interface of %s is called %s, want %s", f, is.Name, want.Name)
	}
	if is.MTU != want.MTU || is.Up() == want.Down {
		c.differ("%s of %s has MTU %d and is up: %t, want %d and %t", is.Name, f, is.MTU, is.Up(), want.MTU, !want.Down)
	}
	if got, want := is.Prefixes(), slices.Sorted(slices.Values(want.Addresses)); !slices.Equal(got, want) {
		c.differ("%s of %s has addresses %v, want %v", is.Name, f, got, want)
	}
	for _, r := range want.Routes {
		if strings.Contains(r.To, ":") {
			continue // listNetwork lists those of IPv4
		}
		if !slices.Contains(c.Routes, Route{To: r.To, Via: r.Via, Through: is.Name}) {
			c.differ("the route to %s through %s of %s is not there: %v", r.To, is.Name, f, c.Routes)
		}
	}
}
