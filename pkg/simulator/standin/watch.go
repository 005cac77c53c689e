package standin

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// watch makes the stand-ins, and then follows both the kernel and the machine.
func (k *Keeper) watch(ctx context.Context, ready func()) error {
	socket, err := listen()
	if err != nil {
		return fmt.Errorf("listening for the kernel's events: %w", err)
	}
	events, err := k.machine.Events()
	if err != nil {
		socket.Close()
		return err
	}
	defer events.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	messages, changes, ended := make(chan []message, 64), make(chan bool, 1), make(chan error, 2)
	defer socket.Close()
	go func() { ended <- receive(socket, messages) }()
	go func() { ended <- follow(ctx, events, changes) }()
	for done := false; ; {
		pending, err := k.reconcile(done)
		if err != nil {
			return err
		}
		if !pending && !done {
			done = true
			ready()
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("following the stand-ins: %w", err)
		case <-changes:
		case batch := <-messages:
			for _, m := range batch {
				if err := k.heed(m); err != nil {
					return err
				}
			}
		}
	}
}

// follow tells of the machine's changes.
func follow(ctx context.Context, events *simulator.Events, changes chan<- bool) error {
	for {
		if _, err := events.Next(ctx, func(simulator.Event) bool { return false }); err != nil {
			return err
		}
		select {
		case changes <- true:
		default: // a look is due anyway
		}
	}
}

// reconcile makes what is missing, removes what has gone from the machine, and plugs
// cables in and out. pending says that something could not be made yet. What cannot be made
// later on is for people to know, and no reason to drop the others.
func (k *Keeper) reconcile(later bool) (pending bool, err error) {
	state, err := k.machine.State()
	if err != nil {
		return false, err
	}
	if state.BootID != k.boot {
		if state, err = k.begin(state); err != nil {
			return false, err
		}
	}
	wanted := map[key]bool{}
	for _, f := range state.Functions() {
		for i := range f.Netdevs {
			at := key{f.Address, i}
			wanted[at] = true
			if l := k.links[at]; l != nil && l.generation != f.Generation {
				k.remove(at)
			}
			if k.links[at] != nil {
				err = k.setWire(at, f)
			} else {
				err = k.create(at, f)
			}
			switch err = unlessMissing(err); { // the end of one that is missing is yet to be heard of
			case err == nil:
			case errors.Is(err, errPending):
				pending = true
			case later:
				k.tell("%v", err)
			default:
				return false, err
			}
		}
	}
	for at := range k.links {
		if !wanted[at] {
			k.remove(at)
		}
	}
	return pending, nil
}

// begin is for a machine that has just been booted: no stand-in of before counts. What an
// earlier keeper left in a Pod has come back from there, as a NIC would.
func (k *Keeper) begin(state *simulator.State) (*simulator.State, error) {
	k.removeAll()
	k.boot = state.BootID
	for _, f := range state.Functions() {
		for _, d := range f.Netdevs {
			if d.Namespace == "" {
				continue
			}
			if err := k.machine.EndNamespace(d.Namespace); err != nil {
				return nil, err
			}
		}
	}
	return k.machine.State()
}

// heed is for one message.
func (k *Keeper) heed(m message) error {
	switch {
	case m.kind == 0:
		return k.look()
	case m.kind == unix.RTM_NEWLINK:
		for at, l := range k.links {
			if l.is(m.link) {
				return k.seen(at, m.space, m.link)
			}
		}
	case m.kind == unix.RTM_DELLINK && m.space == k.wireSpace:
		for at, l := range k.links {
			if l.wire == m.index {
				return k.died(at)
			}
		}
	case m.kind == unix.RTM_NEWADDR || m.kind == unix.RTM_DELADDR:
		for at, l := range k.links {
			if m.space == here && l.place == "" && l.index == m.index {
				return k.lookAt(at)
			}
		}
	}
	return nil
}

// look is for when messages were lost.
func (k *Keeper) look() error {
	for at, l := range k.links {
		_, err := k.wireSide.LinkByIndex(l.wire)
		switch {
		case err == nil:
			err = k.lookAt(at)
		case unlessMissing(err) == nil:
			err = k.died(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lookAt mirrors a stand-in that is at home.
func (k *Keeper) lookAt(at key) error {
	found, err := k.home.LinkByIndex(k.links[at].index)
	if err != nil || !k.links[at].is(found) {
		return nil //nolint:nilerr // it has just gone elsewhere, or its end is yet to be heard of
	}
	return k.seen(at, here, found)
}

// seen mirrors where a stand-in is, and how it is there.
func (k *Keeper) seen(at key, space int, found netlink.Link) error {
	l, attributes := k.links[at], found.Attrs()
	l.place, l.index = "", attributes.Index
	if space != here {
		l.place = fmt.Sprintf("netns-%d", space)
	}
	is := simulator.NetdevState{
		Name: attributes.Name, MAC: l.mac, MTU: attributes.MTU, Up: attributes.Flags&net.FlagUp != 0, Namespace: l.place,
	}
	if l.place == "" {
		addresses, err := k.home.AddrList(found, netlink.FAMILY_ALL)
		if err != nil {
			return nil //nolint:nilerr // it has just gone elsewhere
		}
		for _, a := range addresses {
			if !a.IP.IsLinkLocalUnicast() {
				is.Addresses = append(is.Addresses, a.IPNet.String())
			}
		}
	}
	changed, err := k.machine.MirrorNetdev(at.function, l.generation, at.i, is)
	if err != nil || !changed || l.place != "" {
		return unlessGone(err)
	}
	// Whoever heard of the change may have looked at the sysfs of before: there is one
	// more to hear of.
	return unlessMissing(k.home.LinkSetAlias(found, alias))
}

// alias tells people what an interface is.
const alias = "stand-in of a simulated NIC"

// died is for a stand-in that the kernel destroyed with its namespace. A NIC would be back
// home: under the name that it had there, if that can be had.
func (k *Keeper) died(at key) error {
	l := k.links[at]
	delete(k.links, at)
	state, err := k.machine.State()
	if err != nil {
		return err
	}
	for _, f := range state.Functions() {
		if f.Address != at.function || at.i >= len(f.Netdevs) {
			continue
		}
		d := f.Netdevs[at.i]
		back := simulator.NetdevState{Name: d.Name, MAC: l.mac, MTU: d.MTU}
		taken := func(name string) bool {
			_, err := k.home.LinkByName(name)
			return err == nil || unlessMissing(err) != nil
		}
		if taken(d.Name) {
			back.Name = simulator.FreeName("dev", taken)
		}
		_, err := k.machine.MirrorNetdev(at.function, l.generation, at.i, back)
		return unlessGone(err)
	}
	return nil
}

// unlessGone is err unless it says that a function was unplugged meanwhile.
func unlessGone(err error) error {
	if errors.Is(err, failure.Absent) {
		return nil
	}
	return err
}
