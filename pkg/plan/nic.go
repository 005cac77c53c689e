package plan

import (
	"fmt"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// NICConfig is what class and claim say of a NIC.
type NICConfig struct {
	// InterfaceName, MTU in bytes, addresses with their prefix, and routes of the
	// interface in the Pod.
	InterfaceName string
	MTU           int
	Addresses     []string
	Routes        []machine.Route
	// TrafficClass that RDMA traffic is to have; nil: nobody has said so.
	TrafficClass *int
	// Lossless: the NIC's port must keep that traffic from being lost.
	Lossless bool
	// KeepHost leaves the interface to the host.
	KeepHost bool
	// Topology says whether the workload's NCCL is told where GPUs and NICs sit; nil:
	// where the administrator has said it, since the machine does not.
	Topology *bool
}

// NIC is the NIC's part of a prepared device.
type NIC struct {
	// Name is the NIC's own: "nic-1a-00", and that of a VF: "vf-1a-00-3".
	Name string `json:"name"`
	// Function that is handed out: the NIC, or one of its VFs.
	Function machine.Address `json:"function"`
	// Physical function of a VF; zero for others.
	Physical machine.Address `json:"physical,omitzero"`
	// RDMA is the RDMA device's name; Nodes are all character devices that its users
	// need.
	RDMA  string   `json:"rdma,omitempty"`
	Nodes []string `json:"nodes,omitempty"`
	// GIDIndex of the address by which RoCE v2 is reached over IPv4, where it is known
	// and stays what it is; nil elsewhere.
	GIDIndex *int `json:"gidIndex,omitempty"`
	// Netdev is the (first) interface, as the host has it; nil without one.
	Netdev *machine.Netdev `json:"netdev,omitempty"`
	// Reserved says that it goes into the Pod: its interfaces, if any, and its RDMA device
	// where that belongs to one network namespace.
	Reserved bool `json:"reserved,omitempty"`
	// Interface is how the interface is to be in the Pod; nil where it stays with the
	// host, and where there is none.
	Interface *Interface `json:"interface,omitempty"`
	// TrafficClass as NICConfig has it.
	TrafficClass *int `json:"trafficClass,omitempty"`
	// Lossless says whether the port keeps that traffic, or where none is said any,
	// from being lost; PFC are its lossless priorities.
	Lossless bool  `json:"lossless,omitempty"`
	PFC      []int `json:"pfc,omitempty"`
	// Closeness to the GPU, of a pair.
	Closeness machine.Closeness `json:"closeness,omitempty"`
	// Rail of the NIC; -1: it has none.
	Rail int `json:"rail"`
	// Topology says that NCCL is told where the claim's devices sit.
	Topology bool `json:"topology,omitempty"`
}

// Interface is how a NIC's interface is to be in a Pod. Empty fields leave it as the
// host has it.
type Interface struct {
	Name      string          `json:"name,omitempty"`
	MTU       int             `json:"mtu,omitempty"`
	Addresses []string        `json:"addresses,omitempty"`
	Routes    []machine.Route `json:"routes,omitempty"`
}

// nicOf is the NIC's part of a device. Its errors name field and value of the
// configuration, and what would work.
func nicOf(r Result, d machine.Device, m *machine.Machine) (*NIC, error) {
	netdevs, c := d.Netdevs(), r.Config.NIC
	n := &NIC{
		Name: functionName(d), Function: d.Function(), TrafficClass: c.TrafficClass,
		Closeness: d.Closeness, Rail: m.Rail(d.NIC),
		Topology: d.Closeness == machine.ClosenessDeclared,
	}
	if d.VF != nil {
		n.Physical = d.NIC.Address
	}
	if c.Topology != nil {
		n.Topology = *c.Topology
	}
	if rdma := d.RDMA(); rdma != nil {
		n.RDMA = rdma.Name
		n.Nodes = append(slices.Clone(rdma.Nodes), m.RDMANodes...)
	}
	if len(netdevs) > 0 {
		n.Netdev = &netdevs[0]
	}
	n.PFC = d.NIC.DCB.Priorities()
	lossy := lossyFor(&d.NIC.DCB, c.TrafficClass)
	n.Lossless = lossy == ""
	if r.AdminAccess {
		return n, nil
	}
	if c.Lossless && lossy != "" {
		return nil, failure.New(failure.Conflict,
			"requireLossless: true, but %s %s: have the node's administrator set it (docs/configuration.md), or select NICs by device.attributes[\"dovetail.dev\"].lossless", d.NIC.Name(), lossy)
	}
	if len(netdevs) > 0 && d.Moves() && !c.KeepHost {
		n.Interface = &Interface{Name: c.InterfaceName, MTU: c.MTU, Addresses: c.Addresses, Routes: c.Routes}
		if most := netdevs[0].MaxMTU; most > 0 && c.MTU > most {
			return nil, failure.New(failure.Invalid, "mtu: %d, but %s takes %d at most: the nearest is %d", c.MTU, netdevs[0].Name, most, most)
		}
		return n, nil
	}
	why := staysWithHost
	if len(netdevs) == 0 {
		why = fmt.Sprintf("%s has no network interface: leave it out", n.Name)
	}
	if err := c.withoutInterface(why); err != nil {
		return nil, err
	}
	n.GIDIndex = gidIndex(d.RDMA())
	return n, nil
}

// staysWithHost is why an interface cannot be set up in a Pod.
const staysWithHost = "the interface stays with the host, since others share the NIC: leave it out, or claim nic.dovetail.dev"

// withoutInterface refuses what is for an interface in the Pod.
func (c *NICConfig) withoutInterface(why string) error {
	if field, value := c.ofInterface(); field != "" {
		return failure.New(failure.Invalid, "%s: %s, but %s", field, value, why)
	}
	return nil
}

// functionName names the PCI function that a device has of its NIC.
func functionName(d machine.Device) string {
	if d.VF != nil {
		return d.NIC.VFName(d.VF)
	}
	return d.NIC.Name()
}

// ofInterface is a field that is set and is for an interface in the Pod.
func (c *NICConfig) ofInterface() (field, value string) {
	switch {
	case c.InterfaceName != "":
		return "interfaceName", c.InterfaceName
	case c.MTU != 0:
		return "mtu", fmt.Sprint(c.MTU)
	case len(c.Addresses) > 0:
		return "addresses", c.Addresses[0]
	case len(c.Routes) > 0:
		return "routes", "to " + c.Routes[0].To
	}
	return "", ""
}

// reserve is the step for a NIC whose interfaces, or RDMA device, go into a Pod.
func (n *NIC) reserve(d machine.Device, request string) Step {
	nic := *d.NIC
	nic.VFs = nil
	if d.VF != nil {
		nic.VFs = []machine.VF{*d.VF}
	}
	return Step{Kind: ReserveNIC, Request: request, Device: n.Name, Reserved: &machine.Reserved{Function: n.Function, NIC: nic}}
}
