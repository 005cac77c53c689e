package kerneltest

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// namespace is an open one.
type namespace struct {
	*Kernel
	space  *space
	closed bool
}

func (n *namespace) ID() kernel.ID { return n.space.id }

func (n *namespace) Close() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.closed {
		return unix.EBADF
	}
	n.closed = true
	n.open--
	return nil
}

// failing is what a call shall answer.
func (n *namespace) failing(call string) error {
	if err := n.failures[call]; err != nil {
		return err
	}
	return n.space.failures[call]
}

// on calls f with a link.
func (n *namespace) on(call string, index int, f func(*link) error) error {
	n.mutex.Lock()
	if h := n.hung[hanging{call, index}]; h != nil {
		n.mutex.Unlock()
		h.once.Do(func() { close(h.reached) })
		<-h.until
		n.mutex.Lock()
	}
	defer n.mutex.Unlock()
	if err := n.failing(call); err != nil {
		return err
	}
	l, ok := n.space.links[index]
	if !ok {
		return unix.ENODEV
	}
	n.raise(kernel.Event{Link: l.Name, Index: index, Kind: l.Kind})
	return f(l)
}

func (n *namespace) Links() ([]kernel.Link, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	var links []kernel.Link
	for _, index := range slices.Sorted(maps.Keys(n.space.links)) {
		links = append(links, n.space.links[index].Link)
	}
	return links, n.failures["Links"]
}

func (n *namespace) SetName(index int, name string) error {
	return n.on("SetName", index, func(l *link) error { return n.space.rename(l, name) })
}

func (s *space) rename(l *link, name string) error {
	if strings.Contains(name, "%d") {
		name = s.free(name)
	}
	if other := s.byName(name); other != nil && other != l {
		return unix.EEXIST
	}
	if l.Up && name != l.Name {
		return unix.EBUSY
	}
	l.Name = name
	return nil
}

func (n *namespace) SetMTU(index, mtu int) error {
	return n.on("SetMTU", index, func(l *link) error {
		if l.MaxMTU != 0 && mtu > l.MaxMTU {
			return unix.EINVAL
		}
		l.MTU = mtu
		return nil
	})
}

func (n *namespace) SetMAC(index int, mac string) error {
	return n.on("SetMAC", index, func(l *link) error {
		if l.Up {
			return unix.EBUSY
		}
		l.MAC = mac
		return nil
	})
}

func (n *namespace) SetReception(index int, promiscuous, allMulticast bool) error {
	return n.on("SetReception", index, func(l *link) error {
		l.Promiscuous, l.AllMulticast = promiscuous, allMulticast
		return nil
	})
}

func (n *namespace) DetachXDP(index int, attached uint8) error {
	return n.on("DetachXDP", index, func(l *link) error {
		if l.XDP != attached {
			return unix.EOPNOTSUPP
		}
		l.XDP = 0
		return nil
	})
}

func (n *namespace) SetUp(index int, up bool) error {
	return n.on("SetUp", index, func(l *link) error {
		l.Up, l.Carrier = up, up
		if !up {
			l.routes = nil
			l.addresses = slices.DeleteFunc(l.addresses, func(a string) bool { return netip.MustParsePrefix(a).Addr().Is6() })
		}
		return nil
	})
}

func (n *namespace) MoveLink(index int, to kernel.Namespace, name string) error {
	target := to.(*namespace).space
	return n.on("MoveLink", index, func(l *link) error {
		if target.byName(l.Name) != nil {
			if !strings.Contains(name, "%d") && target.byName(name) != nil {
				return unix.EEXIST
			}
			l.Name = ""
		}
		delete(n.space.links, index)
		target.take(l)
		return target.rename(l, name)
	})
}

func (n *namespace) RDMADevices() ([]kernel.RDMADevice, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	var devices []kernel.RDMADevice
	for _, s := range n.spaces {
		if n.exclusive && s != n.space {
			continue
		}
		for index, name := range s.rdma {
			devices = append(devices, kernel.RDMADevice{Index: index, Name: name})
		}
	}
	return devices, nil
}

func (n *namespace) RDMAExclusive() (bool, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.exclusive, nil
}

func (n *namespace) MoveRDMA(index int, to kernel.Namespace) error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	name, here := n.space.rdma[index]
	switch {
	case n.failing("MoveRDMA") != nil || to.(*namespace).failing("MoveRDMA") != nil:
		return unix.EIO
	case !n.exclusive:
		return unix.EOPNOTSUPP
	case !here:
		return unix.EINVAL
	}
	delete(n.space.rdma, index)
	to.(*namespace).space.rdma[index] = name
	return nil
}

func (n *namespace) DCB(name string) (machine.DCB, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	l := n.space.byName(name)
	if l == nil {
		return machine.DCB{}, unix.ENODEV
	}
	if l.dcb == nil {
		return machine.DCB{}, unix.EOPNOTSUPP
	}
	is := *l.dcb
	is.DSCP = slices.Clone(is.DSCP)
	return is, nil
}

func (n *namespace) SetDCB(name string, want machine.DCB) error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	l := n.space.byName(name)
	if l == nil {
		return unix.ENODEV
	}
	if l.dcb == nil {
		return unix.EOPNOTSUPP
	}
	if err := n.failing("SetDCB"); err != nil {
		return err
	}
	if want.Lossless() {
		l.dcb.PFC = want.PFC
	}
	if want.ETS != nil {
		l.dcb.ETS = want.ETS
	}
	switch {
	case len(want.DSCP) > 0:
		l.dcb.DSCP, l.dcb.Trust = slices.Clone(want.DSCP), machine.TrustDSCP
	case want.Trust == machine.TrustPCP:
		l.dcb.DSCP, l.dcb.Trust = nil, machine.TrustPCP
	}
	return nil
}
