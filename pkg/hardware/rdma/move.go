package rdma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
)

// Move carries out an order: the function goes into the network namespace of a file
// ("/proc/4711/ns/net"). Where that is the host's, there is nothing to do. What is there
// already, from a container before, is only made as the order wants it. What fails
// midway is brought back.
//
// failure.Invalid for an order that no NIC could follow, or this one cannot;
// failure.Conflict where a name is taken in the namespace, the function is in
// another, or the claim was released; failure.Absent where it has gone from the machine.
func (n *NICs) Move(ctx context.Context, namespace string, order hardware.NICMove) error {
	if err := check(order); err != nil {
		return err
	}
	return n.moving(ctx, order.Home, func() error { return n.carryOut(namespace, order) })
}

func (n *NICs) carryOut(namespace string, order hardware.NICMove) error {
	target, err := n.kernel.Open(namespace)
	if err != nil {
		return failure.New(failure.Absent, "the container's network namespace: %w", err)
	}
	defer target.Close()
	host, err := n.kernel.Host()
	if err != nil {
		return err
	}
	defer host.Close()
	if target.ID() == host.ID() {
		return n.nodes(order)
	}
	if _, err := n.tree.Function(order.Home.Address); err != nil {
		return err
	}
	if err := stillPrepared(order); err != nil {
		return err
	}
	m := mover{NICs: n, host: host, target: target, order: order}
	if err := m.move(); err != nil {
		return m.back(err)
	}
	return nil
}

// mover moves one function.
type mover struct {
	*NICs
	host, target kernel.Namespace
	order        hardware.NICMove
	moved        bool // something, by this call
}

func (m *mover) move() error {
	all := wanted(m.order)
	for _, want := range all {
		if err := m.netdev(want); err != nil {
			return err
		}
	}
	if err := m.rdma(); err != nil {
		return err
	}
	for _, want := range all {
		if err := configure(m.target, m.order.Home.Address, want); err != nil {
			return err
		}
	}
	return m.nodes(m.order)
}

// netdev moves an interface, unless it is there already.
func (m *mover) netdev(want settings) error {
	there, err := m.target.Links()
	if err != nil {
		return err
	}
	link, arrived := find(there, m.order.Home.Address, want.was)
	if other, taken := named(there, want.Name); taken && (!arrived || other.Index != link.Index) {
		return failure.New(failure.Conflict, "name: %q: the Pod has an interface of that name already: give another with interfaceName", want.Name)
	}
	if arrived {
		return fits(want, link)
	}
	here, err := m.host.Links()
	if err != nil {
		return err
	}
	if link, arrived = find(here, m.order.Home.Address, want.was); !arrived {
		return failure.New(failure.Conflict, "%s of NIC %s is neither on the host nor in the Pod: another Pod may still have it", want.was.Name, m.order.Home.Address)
	}
	if err := fits(want, link); err != nil {
		return err
	}
	if err := m.host.MoveLink(link.Index, m.target, want.Name); err != nil {
		return refused(err, "%s into the Pod", link.Name)
	}
	m.moved = true
	return nil
}

// ipv6MTU is the least with which an interface has IPv6 (linux/ipv6.h, IPV6_MIN_MTU).
const ipv6MTU = 1280

// fits says whether an interface can be as wanted.
func fits(want settings, link kernel.Link) error {
	ipv6 := slices.IndexFunc(want.Addresses, func(a string) bool { return strings.Contains(a, ":") })
	if ipv6 >= 0 && want.MTU != 0 && want.MTU < ipv6MTU {
		return failure.New(failure.Invalid, "mtu: %d: IPv6 needs %d or more, and %s comes with address %s: raise it, or give other addresses", want.MTU, ipv6MTU, want.was.Name, want.Addresses[ipv6])
	}
	if link.MaxMTU != 0 && want.MTU > link.MaxMTU {
		return failure.New(failure.Invalid, "mtu: %d: %s takes %d at most", want.MTU, want.was.Name, link.MaxMTU)
	}
	return nil
}

// rdma moves the RDMA device, where those belong to one namespace.
func (m *mover) rdma() error {
	name := m.order.Home.RDMA
	if name == "" {
		return nil
	}
	exclusive, err := m.host.RDMAExclusive()
	if err != nil || !exclusive {
		return err
	}
	if _, there, err := device(m.target, name); err != nil || there {
		return err
	}
	found, here, err := device(m.host, name)
	if err != nil {
		return err
	}
	if !here {
		return failure.New(failure.Conflict, "RDMA device %s is neither on the host nor in the Pod: another Pod may still have it", name)
	}
	if err := m.host.MoveRDMA(found.Index, m.target); err != nil {
		return refused(err, "RDMA device %s into the Pod", name)
	}
	m.moved = true
	return nil
}

// back undoes what a failed call has moved; what was there before it stays.
func (m *mover) back(failed error) error {
	if !m.moved {
		return failed
	}
	if err := m.bringHome(m.order.Home); err != nil {
		return errors.Join(failed, fmt.Errorf("and bringing it back: %w", err))
	}
	return failed
}
