package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// skipStatistics leaves out what makes answers long (linux/rtnetlink.h,
// RTEXT_FILTER_SKIP_STATS).
const skipStatistics = 1 << 3

// Links implements Namespace.
func (n *namespace) Links() ([]Link, error) {
	messages, err := again(func() ([][]byte, error) {
		r := n.request(unix.RTM_GETLINK, unix.NLM_F_DUMP)
		r.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		r.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(skipStatistics)))
		return r.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	})
	if err != nil {
		return nil, fmt.Errorf("listing network interfaces: %w", err)
	}
	links := make([]Link, 0, len(messages))
	for _, m := range messages {
		link, err := parseLink(m)
		if err != nil {
			return nil, err
		}
		links = append(links, link)
	}
	return links, nil
}

// parseLink reads an RTM_NEWLINK message, or an RTM_DELLINK (rtnetlink(7)).
func parseLink(message []byte) (Link, error) {
	if len(message) < unix.SizeofIfInfomsg {
		return Link{}, fmt.Errorf("message of %d bytes about an interface: %w", len(message), unix.EBADMSG)
	}
	info := nl.DeserializeIfInfomsg(message)
	link := Link{
		Index: int(info.Index), Up: info.Flags&unix.IFF_UP != 0, Carrier: info.Flags&unix.IFF_LOWER_UP != 0,
		Promiscuous: info.Flags&unix.IFF_PROMISC != 0, AllMulticast: info.Flags&unix.IFF_ALLMULTI != 0,
	}
	attributes, err := nl.ParseRouteAttr(message[unix.SizeofIfInfomsg:])
	if err != nil {
		return Link{}, fmt.Errorf("interface %d: %w", link.Index, err)
	}
	elsewhere := false
	for _, a := range attributes {
		switch a.Attr.Type {
		case unix.IFLA_IFNAME:
			link.Name = text(a.Value)
		case unix.IFLA_ADDRESS:
			link.MAC = net.HardwareAddr(a.Value).String()
		case unix.IFLA_PERM_ADDRESS:
			link.PermanentMAC = net.HardwareAddr(a.Value).String()
		case unix.IFLA_MTU:
			link.MTU = number(a.Value)
		case unix.IFLA_MAX_MTU:
			link.MaxMTU = number(a.Value)
		case unix.IFLA_MASTER:
			link.Master = number(a.Value)
		case unix.IFLA_LINK:
			link.Lower = number(a.Value)
		case unix.IFLA_LINK_NETNSID:
			elsewhere = true // that is where Lower is
		case unix.IFLA_PARENT_DEV_NAME:
			link.Parent = text(a.Value)
		case unix.IFLA_XDP:
			link.XDP = attached(a.Value)
		case unix.IFLA_LINKINFO:
			link.Kind = kind(a.Value)
		}
	}
	if elsewhere || link.Lower == link.Index {
		link.Lower = 0
	}
	return link, nil
}

// kind reads what IFLA_LINKINFO holds.
func kind(info []byte) string {
	name, _ := attribute(info, unix.IFLA_INFO_KIND)
	return text(name)
}

// attached reads what IFLA_XDP holds.
func attached(xdp []byte) uint8 {
	if how, _ := attribute(xdp, nl.IFLA_XDP_ATTACHED); len(how) == 1 {
		return how[0]
	}
	return 0
}

// attribute is what is at the end of a path of nested attributes; nil where one is not
// there.
func attribute(in []byte, path ...uint16) ([]byte, error) {
	if len(path) == 0 {
		return in, nil
	}
	attributes, err := nl.ParseRouteAttr(in)
	if err != nil {
		return nil, err
	}
	for _, a := range attributes {
		if a.Attr.Type&^unix.NLA_F_NESTED == path[0] {
			return attribute(a.Value, path[1:]...)
		}
	}
	return nil, nil
}

// SetName implements Namespace.
func (n *namespace) SetName(index int, name string) error {
	return n.setLink(index, 0, 0, nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
}

// SetMTU implements Namespace.
func (n *namespace) SetMTU(index, mtu int) error {
	return n.setLink(index, 0, 0, nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(mtu))))
}

// SetMAC implements Namespace.
func (n *namespace) SetMAC(index int, mac string) error {
	address, err := net.ParseMAC(mac)
	if err != nil {
		return fmt.Errorf("%w: %w", err, unix.EINVAL)
	}
	return n.setLink(index, 0, 0, nl.NewRtAttr(unix.IFLA_ADDRESS, address))
}

// SetUp implements Namespace.
func (n *namespace) SetUp(index int, up bool) error {
	if up {
		return n.setLink(index, unix.IFF_UP, unix.IFF_UP)
	}
	return n.setLink(index, 0, unix.IFF_UP)
}

// SetReception implements Namespace.
func (n *namespace) SetReception(index int, promiscuous, allMulticast bool) error {
	var flags uint32
	if promiscuous {
		flags |= unix.IFF_PROMISC
	}
	if allMulticast {
		flags |= unix.IFF_ALLMULTI
	}
	return n.setLink(index, flags, unix.IFF_PROMISC|unix.IFF_ALLMULTI)
}

// modes of XDP by how a program is attached: without, the kernel looks only for one of
// the driver's, where it has those (linux/if_link.h, XDP_ATTACHED_* and XDP_FLAGS_*).
var modes = map[uint8][]uint32{
	1: {unix.XDP_FLAGS_DRV_MODE},
	2: {unix.XDP_FLAGS_SKB_MODE},
	3: {unix.XDP_FLAGS_HW_MODE},
	4: {unix.XDP_FLAGS_DRV_MODE, unix.XDP_FLAGS_SKB_MODE, unix.XDP_FLAGS_HW_MODE}, // several
}

// DetachXDP implements Namespace.
func (n *namespace) DetachXDP(index int, attached uint8) error {
	var errs []error
	for _, mode := range modes[attached] {
		xdp := nl.NewRtAttr(unix.IFLA_XDP|unix.NLA_F_NESTED, nil)
		xdp.AddRtAttr(nl.IFLA_XDP_FD, nl.Uint32Attr(^uint32(0))) // -1: none
		xdp.AddRtAttr(nl.IFLA_XDP_FLAGS, nl.Uint32Attr(mode))
		if err := n.setLink(index, 0, 0, xdp); err != nil && !(attached == 4 && errors.Is(err, unix.EOPNOTSUPP)) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// MoveLink implements Namespace.
func (n *namespace) MoveLink(index int, to Namespace, name string) error {
	target, ok := to.(*namespace)
	if !ok {
		return unix.EINVAL
	}
	return n.setLink(index, 0, 0,
		nl.NewRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(target.fd()))),
		nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
}

func (n *namespace) setLink(index int, flags, change uint32, attributes ...nl.NetlinkRequestData) error {
	r := n.request(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index, message.Flags, message.Change = int32(index), flags, change
	r.AddData(message)
	for _, a := range attributes {
		r.AddData(a)
	}
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

func text(value []byte) string { return string(bytes.TrimRight(value, "\x00")) }

// number reads an attribute of four bytes; 0 where it is not one.
func number(value []byte) int {
	if len(value) != 4 {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(value)))
}
