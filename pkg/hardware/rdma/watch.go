package rdma

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
)

// WatchNICs implements hardware.NICs. The port of an InfiniBand card without an interface
// has no events.
func (n *NICs) WatchNICs(ctx context.Context, notify func()) error {
	return n.kernel.Watch(ctx, func(e kernel.Event) {
		if n.concerns(e) {
			notify()
		}
	})
}

// concerns says whether a look is worthwhile. Pods' veths come and go all the time, and
// with them addresses.
func (n *NICs) concerns(e kernel.Event) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	switch {
	case e.Link == "" && e.Index != 0:
		return n.indices[e.Index]
	case e.Kind != veth:
		return true
	}
	return n.names[e.Link] || n.tree.Netdev(e.Link)
}
