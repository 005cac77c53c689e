package rdma

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// tidy takes from an interface what a container with privileges may have left on it, and
// its next user, or the host, would have without knowing. Queueing disciplines and their
// filters the kernel takes away itself with each move (net/core/dev.c, dev_shutdown in
// __dev_change_net_namespace).
func tidy(host kernel.Namespace, link *kernel.Link, want machine.NetdevHome) error {
	if link.Promiscuous != want.Promiscuous || link.AllMulticast != want.AllMulticast {
		if err := host.SetReception(link.Index, want.Promiscuous, want.AllMulticast); err != nil {
			return refused(err, "promiscuous mode %t of %s", want.Promiscuous, link.Name)
		}
	}
	if link.XDP == 0 || want.XDP {
		return nil
	}
	// What another program holds goes with that one, and must not keep the NIC.
	if err := host.DetachXDP(link.Index, link.XDP); err != nil && !errors.Is(err, unix.EBUSY) {
		return refused(err, "no XDP program on %s", link.Name)
	}
	return nil
}
