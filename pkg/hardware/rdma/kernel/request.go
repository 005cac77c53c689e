package kernel

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// dumps is how often a list is asked for that changes while the kernel gives it.
const dumps = 10

var errRestless = fmt.Errorf("the kernel's list changed %d times while it was read: %w", dumps, unix.EAGAIN)

func interrupted(err error) bool { return errors.Is(err, netlink.ErrDumpInterrupted) }

// request makes one for the namespace's own sockets.
func (n *namespace) request(kind, flags int) *nl.NetlinkRequest {
	r := nl.NewNetlinkRequest(kind, flags)
	r.Sockets = n.sockets
	return r
}

// again asks for a list until it was given whole.
func again[T any](ask func() ([]T, error)) ([]T, error) {
	for range dumps {
		if list, err := ask(); !interrupted(err) {
			return list, err
		}
	}
	return nil, errRestless
}
