package rdma

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware/pci"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/sysfs"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// reader reads one NIC.
type reader struct {
	*NICs
	network *network
	faults  []machine.Fault
}

func (r *reader) nic(address machine.Address) (machine.NIC, error) {
	f, err := r.tree.Function(address)
	if err != nil {
		return machine.NIC{}, err
	}
	nic := machine.NIC{
		Address: address, Vendor: vendor(f.Vendor), Model: model(f), Driver: f.Driver,
		MaxVFs: f.MaxVFs, Location: pci.Locate(r.options.SysfsRoot, address),
	}
	part := r.part(f)
	nic.Netdevs, nic.RDMA, nic.Away, nic.Withheld = part.netdevs, part.rdma, part.away, part.withheld
	if f.RDMA != nil {
		nic.FirmwareVersion = f.RDMA.Firmware
	}
	if !nic.Away {
		nic.Health = health(&nic)
		r.dcb(&nic)
	}
	for _, at := range f.VFs {
		vf, err := r.vf(at)
		if err != nil {
			r.faults = append(r.faults, machine.Fault{Device: at.Address.String(), Kind: machine.FaultUnreadable, Message: err.Error()})
			continue
		}
		nic.VFs = append(nic.VFs, vf)
	}
	return nic, nil
}

func (r *reader) vf(at sysfs.VF) (machine.VF, error) {
	f, err := r.tree.Function(at.Address)
	if err != nil {
		return machine.VF{}, err
	}
	part := r.part(f)
	return machine.VF{
		Index: at.Index, Address: at.Address, Driver: f.Driver,
		Netdevs: part.netdevs, RDMA: part.rdma, Away: part.away, Withheld: part.withheld,
	}, nil
}

// part is what NICs and VFs have alike.
type part struct {
	netdevs  []machine.Netdev
	rdma     *machine.RDMADevice
	away     bool
	withheld string
}

func (r *reader) part(f sysfs.Function) part {
	if f.Driver == "" {
		// What a driver has made goes piece by piece when it is unloaded: it is in no other
		// namespace, and nothing can be done with it.
		return part{withheld: unfit(f)}
	}
	var p part
	if f.RDMA != nil {
		p.rdma, p.away = &f.RDMA.RDMADevice, f.RDMA.Away
	}
	for _, d := range f.Netdevs {
		link, here := r.network.link(r.tree, d.Name)
		if !here {
			p.away = true
			continue
		}
		p.netdevs = append(p.netdevs, machine.Netdev{
			Name: d.Name, MAC: link.MAC, MTU: link.MTU, MaxMTU: link.MaxMTU,
			Up: link.Up, Carrier: link.Carrier, Speed: d.Speed,
		})
		if p.withheld == "" {
			p.withheld = r.network.withheld(link)
		}
	}
	if f.Ethernet() && len(f.Netdevs) == 0 {
		p.away = true // RoCE is nothing without an interface
	}
	if p.withheld == "" {
		p.withheld = unfit(f)
	}
	return p
}

// unfit says why a function cannot be offered whatever its interfaces are; empty: it can.
func unfit(f sysfs.Function) string {
	switch {
	case f.Driver == "":
		return "no driver is bound to it: load the card's driver"
	case f.Driver == "vfio-pci":
		return "vfio-pci is bound to it, for a virtual machine: bind the card's own driver to have it offered"
	case f.RDMA == nil:
		return fmt.Sprintf("Ethernet only: driver %s gives it no RDMA device; where the card has RDMA, load the driver's RDMA module", f.Driver)
	}
	return ""
}

// health judges by the link, where one is wanted.
func health(nic *machine.NIC) machine.Health {
	for _, d := range nic.Netdevs {
		if d.Up && !d.Carrier {
			return down(d.Name, "has no carrier")
		}
	}
	if nic.RDMA == nil || len(nic.Netdevs) > 0 {
		return machine.Health{}
	}
	for _, p := range nic.RDMA.Ports {
		if p.State != active {
			return down(fmt.Sprintf("port %d of %s", p.Number, nic.RDMA.Name), "is "+p.State)
		}
	}
	return machine.Health{}
}

// active is the kernel's word for a port that works.
const active = "ACTIVE"

func down(what, how string) machine.Health {
	return machine.Health{Reason: machine.FaultLinkDown, Message: fmt.Sprintf("%s %s: look at the cable, and at the switch's port", what, how)}
}

// dcb asks the first interface's port. Many do not say, and virtual functions never.
func (r *reader) dcb(nic *machine.NIC) {
	if len(nic.Netdevs) == 0 {
		return
	}
	name := nic.Netdevs[0].Name
	host, err := r.kernel.Host()
	if err == nil {
		defer host.Close()
		nic.DCB, err = host.DCB(name)
	}
	if err != nil && !silent(err) {
		r.faults = append(r.faults, machine.Fault{
			Device: nic.Address.String(), Kind: machine.FaultUnreadable,
			Message: fmt.Sprintf("%s's DCB settings cannot be read, so it counts as not lossless: %v", name, err),
		})
	}
}

// silent says whether an error means that a port says nothing of DCB: it or the kernel
// has none, or the interface has just gone.
func silent(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENODATA)
}
