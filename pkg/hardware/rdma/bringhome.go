package rdma

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// BringHome implements hardware.NICs.
func (n *NICs) BringHome(ctx context.Context, home machine.NICHome) error {
	err := n.moving(ctx, home, func() error { return n.bringHome(home) })
	if err != nil {
		return fmt.Errorf("bringing NIC %s home: %w", home.Address, err)
	}
	return nil
}

func (n *NICs) bringHome(home machine.NICHome) error {
	if _, err := n.tree.Function(home.Address); err != nil {
		return err
	}
	host, err := n.kernel.Host()
	if err != nil {
		return err
	}
	defer host.Close()
	missing, err := absent(host, home)
	if err == nil && !missing.none() {
		closed := n.fetch(host, home, missing)
		if missing, err = absent(host, home); err == nil && !missing.none() {
			err = missing.error(closed)
		}
	}
	if err != nil {
		return err
	}
	return restore(host, home)
}

// parts are those of a function that are not in a namespace.
type parts struct {
	netdevs []machine.NetdevHome
	rdma    string // empty: none
}

func (p parts) none() bool { return len(p.netdevs) == 0 && p.rdma == "" }

// error says what has not been found. closed is why a namespace could not be searched.
func (p parts) error(closed error) error {
	what := p.rdma
	if len(p.netdevs) > 0 {
		what = p.netdevs[0].Name
	}
	if closed != nil {
		return failure.New(failure.Busy, "%s is not on the host, and not all network namespaces could be searched: %w: it comes back when its Pod's namespace ends", what, closed)
	}
	return failure.New(failure.Busy, "%s is in no network namespace that can be found: the kernel gives it back when its Pod's namespace has ended", what)
}

// absent finds out what of a function is not in a namespace.
func absent(in kernel.Namespace, home machine.NICHome) (parts, error) {
	var missing parts
	links, err := in.Links()
	if err != nil {
		return parts{}, err
	}
	for _, d := range home.Netdevs {
		if _, here := find(links, home.Address, d); !here {
			missing.netdevs = append(missing.netdevs, d)
		}
	}
	if home.RDMA == "" || !home.RDMAMoves {
		return missing, nil
	}
	if _, here, err := device(in, home.RDMA); err != nil {
		return parts{}, err
	} else if !here {
		missing.rdma = home.RDMA
	}
	return missing, nil
}

// fetch moves to the host what other namespaces have of the missing. The error says why
// one could not be looked into; that it ends just now is none.
func (n *NICs) fetch(host kernel.Namespace, home machine.NICHome, missing parts) error {
	var closed error
	for _, path := range n.kernel.Others() {
		other, err := n.kernel.Open(path)
		if err == nil {
			err = send(other, host, home.Address, &missing)
			_ = other.Close()
		}
		if err != nil && !gone(err) {
			closed = fmt.Errorf("%s: %w", path, err)
		}
		if missing.none() {
			return nil
		}
	}
	return closed
}

// send moves what a namespace has of the missing, the RDMA device first: without its
// interface it does no harm, while an interface that is alone on the host would be
// offered.
func send(from, to kernel.Namespace, function machine.Address, missing *parts) error {
	if missing.rdma != "" {
		found, here, err := device(from, missing.rdma)
		if err == nil && here {
			if err = from.MoveRDMA(found.Index, to); err == nil {
				missing.rdma = ""
			}
		}
		if err != nil {
			return err
		}
	}
	if len(missing.netdevs) == 0 {
		return nil
	}
	links, err := from.Links()
	if err != nil {
		return err
	}
	var left []machine.NetdevHome
	for _, d := range missing.netdevs {
		link, here := find(links, function, d)
		if here {
			err = errors.Join(err, sendLink(from, to, link.Index, d.Name))
		} else {
			left = append(left, d)
		}
	}
	missing.netdevs = left
	return err
}

// sendLink moves an interface. Where its name is taken on the host it goes there under
// another: what has its name may still go, while the namespace that it is in may end.
func sendLink(from, to kernel.Namespace, index int, name string) error {
	err := from.MoveLink(index, to, name)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	if err = from.MoveLink(index, to, spare); errors.Is(err, unix.ENODEV) {
		return nil // it had come to the host, and only its name could not be had
	}
	return err
}

// spare is what the kernel, too, calls an interface that comes back and whose name is
// taken.
const spare = "dev%d"
