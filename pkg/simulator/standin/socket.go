package standin

import (
	"errors"
	"os"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// message is what the kernel tells of a link or an address in the home namespace, or in
// one that the home namespace has a number for, as it has for those to which an interface
// was moved.
type message struct {
	kind  uint16 // RTM_NEWLINK, …; 0: messages were lost
	space int    // number of the namespace, or here
	// link is set for messages of links, index for all.
	link  netlink.Link
	index int
}

// here is the home namespace's number.
const here = -1

// groups of multicast, as bits: link, IPv4 and IPv6 addresses (linux/rtnetlink.h,
// RTMGRP_*).
const groups = 0x1 | 0x10 | 0x100

// backlog in bytes is what may be waiting to be heard: of what is lost, some cannot be seen
// afterwards, as a name in a Pod.
const backlog = 8 << 20

// listen opens a socket for messages of all those namespaces: netlink(7),
// NETLINK_LISTEN_ALL_NSID.
func listen() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	socket := os.NewFile(uintptr(fd), "rtnetlink")
	err = errors.Join(
		os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_LISTEN_ALL_NSID, 1)),
		os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, backlog)),
		os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups})),
	)
	if err != nil {
		socket.Close()
		return nil, err
	}
	return socket, nil
}

// receive sends what comes until the socket is closed.
func receive(socket *os.File, to chan<- []message) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	buffer, control := make([]byte, 1<<16), make([]byte, 256)
	for {
		var n, oob int
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			n, oob, _, _, failed = unix.Recvmsg(int(fd), buffer, control, 0)
			return !errors.Is(failed, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return err
		case errors.Is(failed, unix.ENOBUFS):
			to <- []message{{}}
		case failed != nil && !errors.Is(failed, unix.EINTR):
			return os.NewSyscallError("recvmsg", failed)
		case failed == nil:
			to <- parse(slices.Clone(buffer[:n]), space(control[:oob])) // a link keeps parts of it
		}
	}
}

// space is the number of the namespace that a datagram is of.
func space(control []byte) int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return here
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_NETLINK && m.Header.Type == unix.NETLINK_LISTEN_ALL_NSID && len(m.Data) >= 4 {
			return int(int32(nl.NativeEndian().Uint32(m.Data)))
		}
	}
	return here
}

func parse(datagram []byte, space int) []message {
	raw, err := syscall.ParseNetlinkMessage(datagram)
	if err != nil {
		return []message{{}}
	}
	var messages []message
	for _, m := range raw {
		one := message{kind: m.Header.Type, space: space}
		switch m.Header.Type {
		case unix.RTM_NEWLINK, unix.RTM_DELLINK:
			link, err := netlink.LinkDeserialize(nil, m.Data)
			if err != nil {
				return append(messages, message{})
			}
			one.link, one.index = link, link.Attrs().Index
		case unix.RTM_NEWADDR, unix.RTM_DELADDR:
			if len(m.Data) < unix.SizeofIfAddrmsg {
				continue
			}
			one.index = int(nl.DeserializeIfAddrmsg(m.Data).Index)
		default:
			continue
		}
		messages = append(messages, one)
	}
	return messages
}
