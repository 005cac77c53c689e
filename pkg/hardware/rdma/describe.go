package rdma

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience"
)

// DescribeNICs implements hardware.NICs. NICs are read side by side; one that does not
// answer in time is a fault, and delays nobody for longer than that. One that does not
// because it is being moved or set up is as it was read last. Errors are
// failure.Unreachable: the machine's PCI functions or the host's network cannot be listed.
func (n *NICs) DescribeNICs(ctx context.Context, only ...machine.Address) (hardware.NICDescription, error) {
	addresses, err := n.tree.NICs()
	if err != nil {
		return hardware.NICDescription{}, failure.New(failure.Unreachable, "listing PCI functions: %w", err)
	}
	if len(only) > 0 {
		addresses = slices.DeleteFunc(addresses, func(a machine.Address) bool { return !slices.Contains(only, a) })
	}
	if len(addresses) == 0 {
		return hardware.NICDescription{}, ctx.Err()
	}
	network, err := n.look()
	if err != nil {
		return hardware.NICDescription{}, err
	}
	results := make([]result, len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		all.Go(func() { results[i] = n.readInTime(network, address) })
	}
	all.Wait()
	described := hardware.NICDescription{RDMANodes: n.tree.CommonNodes(), RDMAExclusive: network.exclusive}
	for _, r := range results {
		if r.nic != nil {
			described.NICs = append(described.NICs, *r.nic)
		}
		described.Faults = append(described.Faults, r.faults...)
	}
	n.learn(network, described.NICs)
	return described, ctx.Err()
}

// result of reading one NIC: nil without a fault for one that has just gone.
type result struct {
	nic    *machine.NIC
	faults []machine.Fault
}

// readInTime is readOne, which waits for a change of the NIC as long as that may take: the
// other NICs and the GPUs are not to wait so long.
func (n *NICs) readInTime(network *network, address machine.Address) result {
	now := make(chan result, 1)
	go func() { now <- n.readOne(network, address) }()
	limit := cmp.Or(n.calls.Limit, patience.Default)
	for changing := false; !changing; changing = n.calls.Changing(nicOf(address)) {
		select {
		case r := <-now: // at its own limit at the latest, where nothing is changed
			n.remember(address, r)
			return r
		case <-time.After(limit):
		}
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if r, known := n.last[address]; known {
		return r
	}
	return faulty(address, machine.FaultUnresponsive, nicOf(address)+" does not answer while it is being moved or set up: it is asked again")
}

func (n *NICs) remember(address machine.Address, r result) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if r.nic == nil {
		delete(n.last, address)
		return
	}
	n.last[address] = r
}

func (n *NICs) readOne(network *network, address machine.Address) result {
	read := make(chan result, 1) // what comes too late is not waited for
	err := n.calls.Do(nicOf(address), func() error {
		r := reader{NICs: n, network: network}
		nic, err := r.nic(address)
		if err == nil {
			read <- result{nic: &nic, faults: r.faults}
		}
		return err
	})
	switch {
	case err == nil:
		return <-read
	case errors.Is(err, failure.Absent):
		return result{}
	case errors.Is(err, failure.Busy):
		return faulty(address, machine.FaultUnresponsive, err.Error())
	default:
		return faulty(address, machine.FaultUnreadable, err.Error())
	}
}

func faulty(address machine.Address, kind machine.FaultKind, message string) result {
	return result{faults: []machine.Fault{{Device: address.String(), Kind: kind, Message: message}}}
}

// learn remembers interfaces, so that events about them are told apart from others' also
// when sysfs has them no more.
func (n *NICs) learn(network *network, nics []machine.NIC) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	note := func(netdevs []machine.Netdev) {
		for _, d := range netdevs {
			n.names[d.Name] = true
			if l, here := network.link(n.tree, d.Name); here {
				n.indices[l.Index] = true
			}
		}
	}
	for i := range nics {
		note(nics[i].Netdevs)
		for j := range nics[i].VFs {
			note(nics[i].VFs[j].Netdevs)
		}
	}
}
