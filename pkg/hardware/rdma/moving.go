package rdma

import (
	"context"
	"sync"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// allRDMA is the lock's name for moves of RDMA devices: two at once could exchange the
// numbers of their character devices.
const allRDMA = "RDMA devices"

// moving calls f, which moves a function, when nobody else moves it. Where f hangs, other
// NICs are not held up.
func (n *NICs) moving(ctx context.Context, home machine.NICHome, f func() error) error {
	thing := nicOf(home.Address)
	names := []string{thing}
	if home.RDMAMoves {
		names = append(names, allRDMA)
	}
	return n.calls.Within(n.options.ChangePatience, thing, func() error {
		unlock, err := n.take(ctx, names)
		if err != nil {
			return err
		}
		defer unlock()
		return f()
	})
}

// nicOf names a NIC, or a virtual function, as the thing that may hang.
func nicOf(function machine.Address) string { return "NIC " + function.String() }

// take takes locks, which come in one order for all.
func (n *NICs) take(ctx context.Context, names []string) (unlock func(), err error) {
	if n.lock != "" {
		return n.lock.Lock(ctx, names...)
	}
	var taken []*sync.Mutex
	for _, name := range names {
		one := n.mutexOf(name)
		one.Lock()
		taken = append(taken, one)
	}
	return func() {
		for _, one := range taken {
			one.Unlock()
		}
	}, nil
}

func (n *NICs) mutexOf(name string) *sync.Mutex {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.locks[name] == nil {
		n.locks[name] = &sync.Mutex{}
	}
	return n.locks[name]
}
