package description

import (
	"cmp"
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// NIC is one PCI function of a network card, with a model where the file gives none for
// all.
type NIC struct {
	Place
	Model string `json:"model,omitempty"`
	// Driver is the model's own when left out; "vfio-pci", and "none" for none.
	Driver string `json:"driver,omitempty"`
	// Netdevs left out are one a port, named as systemd names them; [] is none.
	Netdevs *[]Netdev `json:"netdevs,omitempty"`
	// MTU of those that say nothing; left out: 1500.
	MTU int `json:"mtu,omitempty"`
	// RDMA is the RDMA device's name: left out, as the kernel numbers them; "none".
	RDMA string `json:"rdma,omitempty"`
	// LinkLayer is Ethernet when left out; Speed in Gb/s is the model's.
	LinkLayer machine.LinkLayer `json:"linkLayer,omitempty"`
	Speed     *int              `json:"speed,omitempty"`
	DCB       *DCB              `json:"dcb,omitempty"`
	// MaxVFs is how many virtual functions there can be, NumVFs how many there are.
	MaxVFs int `json:"maxVFs,omitempty"`
	NumVFs int `json:"numVFs,omitempty"`
	// Uplink says that the default route goes through it; Bond names a bond that it is
	// in.
	Uplink bool   `json:"uplink,omitempty"`
	Bond   string `json:"bond,omitempty"`
}

// Netdev is a network interface.
type Netdev struct {
	Name string `json:"name"`
	// MAC is made from the machine's name and the PCI address when left out.
	MAC       string          `json:"mac,omitempty"`
	MTU       int             `json:"mtu,omitempty"`
	Down      bool            `json:"down,omitempty"`
	Addresses []string        `json:"addresses,omitempty"`
	Routes    []machine.Route `json:"routes,omitempty"`
}

// DCB is how a port treats classes of traffic after boot.
type DCB struct {
	// PFC are the priorities that are lossless.
	PFC   []int         `json:"pfc,omitempty"`
	Trust machine.Trust `json:"trust,omitempty"`
	// DSCP maps code points to priorities.
	DSCP map[uint8]uint8 `json:"dscp,omitempty"`
}

func (f *File) nic(n *NIC) (simulator.NICSpec, error) {
	var zero simulator.NICSpec
	address, above, numaNode, err := n.parse()
	if err != nil {
		return zero, err
	}
	m, err := model.LookupNIC(cmp.Or(n.Model, f.NICModel))
	if err != nil {
		return zero, fmt.Errorf("model: %w", err)
	}
	spec := simulator.NICSpec{
		Address: address, Above: above, NUMANode: numaNode, Model: m.Name,
		Speed: or(n.Speed, m.Speed), MaxVFs: n.MaxVFs, NumVFs: n.NumVFs, Uplink: n.Uplink, Bond: n.Bond,
	}
	switch n.Driver {
	case "":
		spec.Driver = m.Driver
	case none:
	default:
		spec.Driver = n.Driver
	}
	if spec.Driver != m.Driver {
		return spec, n.unused(m)
	}
	if err := n.rdma(&spec, m); err != nil {
		return zero, err
	}
	if err := f.netdevs(n, &spec, m); err != nil {
		return zero, err
	}
	if spec.DCB, err = cmp.Or(n.DCB, f.DCB).of(&spec, m, n.DCB != nil); err != nil {
		return zero, fmt.Errorf("dcb: %w", err)
	}
	return spec, n.check(&spec, m)
}

// none stands for a driver, or an RDMA device, that is not there.
const none = "none"

// unnamed is what RDMA is until nameRDMA gives it a name.
const unnamed = "?"

func (n *NIC) rdma(spec *simulator.NICSpec, m *model.NIC) error {
	switch {
	case m.RDMA == nil && n.RDMA != "" && n.RDMA != none:
		return fmt.Errorf("rdma: %q, but model %s has no RDMA: leave it out", n.RDMA, m.Name)
	case m.RDMA == nil && n.LinkLayer != "" && n.LinkLayer != machine.LinkEthernet:
		return fmt.Errorf("linkLayer: %q, but model %s has Ethernet alone: leave it out", n.LinkLayer, m.Name)
	case m.RDMA == nil || n.RDMA == none:
		return nil
	}
	spec.RDMA, spec.LinkLayer = cmp.Or(n.RDMA, unnamed), cmp.Or(n.LinkLayer, machine.LinkEthernet)
	switch {
	case n.RDMA != "" && !nameForm.MatchString(n.RDMA):
		return fmt.Errorf("rdma: %q is no device name: use up to 63 letters, digits, - and _", n.RDMA)
	case spec.LinkLayer != machine.LinkEthernet && spec.LinkLayer != machine.LinkInfiniBand:
		return fmt.Errorf("linkLayer: %q is unknown: use Ethernet or InfiniBand", n.LinkLayer)
	case spec.LinkLayer == machine.LinkInfiniBand && !m.RDMA.InfiniBand:
		return fmt.Errorf("linkLayer: InfiniBand, but model %s has Ethernet alone: leave it out", m.Name)
	}
	return nil
}

// nameRDMA gives RDMA devices that have no name the lowest free number of their kind.
func nameRDMA(nics []simulator.NICSpec) {
	taken := map[string]bool{}
	for _, n := range nics {
		taken[n.RDMA] = true
	}
	for i := range nics {
		if nics[i].RDMA != unnamed {
			continue
		}
		m, err := model.LookupNIC(nics[i].Model)
		if err != nil {
			panic(err) // it was looked up before
		}
		nics[i].RDMA = simulator.FreeName(m.RDMA.Prefix, func(name string) bool { return taken[name] })
		taken[nics[i].RDMA] = true
	}
}
