package rdma

import (
	"context"
	"fmt"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/sysfs"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// NICHome implements hardware.NICs.
func (n *NICs) NICHome(ctx context.Context, function machine.Address) (machine.NICHome, error) {
	read := make(chan machine.NICHome, 1) // what comes too late is not waited for
	err := n.calls.Do(nicOf(function), func() error {
		home, err := n.home(function)
		read <- home
		return err
	})
	if err != nil {
		return machine.NICHome{}, err
	}
	return <-read, ctx.Err()
}

func (n *NICs) home(function machine.Address) (machine.NICHome, error) {
	host, err := n.kernel.Host()
	if err != nil {
		return machine.NICHome{}, err
	}
	defer host.Close()
	network, err := survey(host, nil)
	if err != nil {
		return machine.NICHome{}, err
	}
	f, err := n.tree.Function(function)
	if err != nil {
		return machine.NICHome{}, err
	}
	if f.Driver == "" {
		return machine.NICHome{}, failure.New(failure.Unreachable, "NIC %s: %s", function, unfit(f))
	}
	if f.RDMA != nil && f.RDMA.Away || f.Ethernet() && len(f.Netdevs) == 0 {
		return machine.NICHome{}, away(function)
	}
	home := machine.NICHome{Address: function}
	for _, d := range f.Netdevs {
		link, here := network.link(n.tree, d.Name)
		if !here {
			return machine.NICHome{}, away(function)
		}
		netdev, err := netdevHome(host, network, link)
		if err != nil {
			return machine.NICHome{}, fmt.Errorf("NIC %s: %w", function, err)
		}
		home.Netdevs = append(home.Netdevs, netdev)
	}
	if err := rest(host, f, &home); err != nil {
		return machine.NICHome{}, fmt.Errorf("NIC %s: %w", function, err)
	}
	return home, nil
}

func away(function machine.Address) error {
	return failure.New(failure.Conflict, "NIC %s: a part of it is in another network namespace already: wait until the Pod that has it has ended", function)
}

// rest reads what is not the interfaces'.
func rest(host kernel.Namespace, f sysfs.Function, home *machine.NICHome) (err error) {
	if f.RDMA != nil {
		home.RDMA = f.RDMA.Name
		if home.RDMAMoves, err = host.RDMAExclusive(); err != nil {
			return err
		}
	}
	if len(home.Netdevs) == 0 {
		return nil
	}
	if home.DCB, err = host.DCB(home.Netdevs[0].Name); err != nil && !silent(err) {
		return fmt.Errorf("reading the DCB settings of %s: %w", home.Netdevs[0].Name, err)
	}
	return nil
}

// netdevHome reads one interface. What a move would destroy for good is a conflict.
func netdevHome(host kernel.Namespace, network *network, link kernel.Link) (machine.NetdevHome, error) {
	if above := network.above(link); len(above) > 0 {
		return machine.NetdevHome{}, failure.New(failure.Conflict,
			"%s is on top of %s, and would be lost if that moved into a Pod: delete it, or have the NIC stay with keepHostNetwork: true",
			strings.Join(above, ", "), link.Name)
	}
	netdev := machine.NetdevHome{
		Name: link.Name, MAC: link.MAC, MTU: link.MTU, Up: link.Up,
		Promiscuous: link.Promiscuous, AllMulticast: link.AllMulticast, XDP: link.XDP != 0,
	}
	var err error
	if netdev.Sysctls, err = host.Sysctls(link.Index); err != nil {
		return machine.NetdevHome{}, fmt.Errorf("reading the sysctls of %s: %w", link.Name, err)
	}
	addresses, err := host.Addresses()
	if err != nil {
		return machine.NetdevHome{}, err
	}
	for _, a := range addresses {
		if a.Link == link.Index && !a.Kernel {
			netdev.Addresses = append(netdev.Addresses, a.Address)
		}
	}
	for _, r := range network.routes {
		if r.Link != link.Index || r.Kernel {
			continue
		}
		if r.Shared {
			return machine.NetdevHome{}, failure.New(failure.Conflict,
				"the route to %s goes through %s and other interfaces, and would be lost if that moved into a Pod: delete it, or have the NIC stay with keepHostNetwork: true",
				r.To, link.Name)
		}
		netdev.Routes = append(netdev.Routes, r.Route)
	}
	return netdev, nil
}
