package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Groups of multicast (linux/rtnetlink.h, rdma/rdma_netlink.h, lib/kobject_uevent.c).
const (
	groupLink   = 1
	groupIPv4   = 5
	groupRoute4 = 7
	groupRule4  = 8
	groupIPv6   = 9
	groupRoute6 = 11
	groupRule6  = 19
	groupDCB    = 23

	groupRDMA   = 4 // RDMA_NL_GROUP_NOTIFY, from Linux 6.12
	groupUevent = 1
)

// source is a socket that events come from.
type source struct {
	protocol int
	groups   []int
	// events of a datagram, which may hold several messages.
	events func(datagram []byte) []Event
	// optional: kernels may be without.
	optional bool
}

var sources = []source{
	{
		protocol: unix.NETLINK_ROUTE,
		groups:   []int{groupLink, groupIPv4, groupRoute4, groupRule4, groupIPv6, groupRoute6, groupRule6, groupDCB},
		events:   routeEvents,
	},
	{protocol: unix.NETLINK_RDMA, groups: []int{groupRDMA}, events: anyEvent, optional: true},
	{protocol: unix.NETLINK_KOBJECT_UEVENT, groups: []int{groupUevent}, events: uevents},
}

// Watch implements Kernel.
func (l *Linux) Watch(ctx context.Context, notify func(Event)) error {
	host, err := open(l.host())
	if err != nil {
		return err
	}
	sockets, err := subscribeAll(host)
	if err := errors.Join(err, host.Close()); err != nil {
		return err
	}
	ended := make(chan error, len(sockets))
	var readers sync.WaitGroup
	for from, socket := range sockets {
		readers.Go(func() { ended <- read(socket, from.events, notify) })
	}
	var broken error
	select {
	case <-ctx.Done():
	case broken = <-ended:
	}
	for _, socket := range sockets {
		_ = socket.Close() // which ends its reader
	}
	readers.Wait()
	if broken == nil {
		return nil
	}
	return fmt.Errorf("listening for the kernel's events: %w", broken)
}

// subscribeAll opens a socket for each source that the kernel has.
func subscribeAll(in *namespace) (map[*source]*os.File, error) {
	sockets := map[*source]*os.File{}
	for i := range sources {
		from := &sources[i]
		var socket *os.File
		err := in.inside(func() (err error) {
			socket, err = subscribe(from)
			return err
		})
		if err != nil && from.optional {
			continue
		}
		if err != nil {
			for _, s := range sockets {
				_ = s.Close()
			}
			return nil, fmt.Errorf("subscribing to events of netlink's protocol %d: %w", from.protocol, err)
		}
		sockets[from] = socket
	}
	return sockets, nil
}

// subscribe opens a socket that Close wakes readers of.
func subscribe(from *source) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, from.protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	address := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	err = os.NewSyscallError("bind", unix.Bind(fd, address))
	for _, group := range from.groups {
		if err == nil {
			err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group))
		}
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "netlink events"), nil
}

// datagram is more than the kernel puts into one (NLMSG_GOODSIZE).
const datagram = 64 << 10

// read reads until the socket is closed. Where the kernel had to drop events, what they
// were about is not known.
func read(socket *os.File, events func([]byte) []Event, notify func(Event)) error {
	buffer := make([]byte, datagram)
	for {
		n, err := socket.Read(buffer)
		if errors.Is(err, syscall.ENOBUFS) {
			notify(Event{})
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range events(buffer[:n]) {
			notify(e)
		}
	}
}
