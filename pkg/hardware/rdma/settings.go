package rdma

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// vfPatience is how long a card may take to make its virtual functions: some seconds for
// a hundred of them.
const vfPatience = 30 * time.Second

// SetVFs implements hardware.NICs. It needs sysfs mounted so that it can be written.
func (n *NICs) SetVFs(ctx context.Context, nic machine.Address, want int) error {
	f, err := n.tree.Function(nic)
	switch {
	case err != nil:
		return err
	case len(f.VFs) == want:
		return ctx.Err()
	case f.PF != nil || f.MaxVFs == 0:
		return failure.New(failure.Unsupported, "NIC %s has no virtual functions (SR-IOV): enable it in the card's firmware and the BIOS, or configure no virtual functions for it", nic)
	case want < 0 || want > f.MaxVFs:
		return failure.New(failure.Invalid, "NIC %s: %d virtual functions: it can have %d at most", nic, want, f.MaxVFs)
	case want != 0 && len(f.VFs) != 0:
		return failure.New(failure.Conflict, "NIC %s: %d virtual functions: it has %d already, which may be in use: set it to 0 first", nic, want, len(f.VFs))
	}
	err = n.calls.Within(vfPatience, nicOf(nic), func() error { return n.tree.SetVFs(nic, want) })
	switch {
	case err == nil:
		return ctx.Err()
	case errors.Is(err, failure.Busy):
		return err
	case errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return failure.New(failure.Unsupported, "NIC %s: %d virtual functions: %w: sysfs must be mounted so that it can be written", nic, want, err)
	case errors.Is(err, unix.EBUSY):
		return failure.New(failure.Conflict, "NIC %s: %d virtual functions: %w: somebody else changes them", nic, want, err)
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOENT):
		return failure.New(failure.Unsupported, "NIC %s: %d virtual functions: %w: its driver %q makes none", nic, want, err, f.Driver)
	}
	return fmt.Errorf("NIC %s: %d virtual functions: %w", nic, want, err)
}

// SetDCB implements hardware.NICs.
func (n *NICs) SetDCB(ctx context.Context, nic machine.Address, want machine.DCB) (machine.DCB, error) {
	has := make(chan machine.DCB, 1) // what comes too late is not waited for
	err := n.calls.Within(n.options.ChangePatience, nicOf(nic), func() error {
		is, err := n.setDCB(nic, want)
		has <- is
		return err
	})
	select {
	case is := <-has:
		return is, cmp.Or(err, ctx.Err())
	default:
		return machine.DCB{}, err
	}
}

func (n *NICs) setDCB(nic machine.Address, want machine.DCB) (machine.DCB, error) {
	f, err := n.tree.Function(nic)
	if err != nil {
		return machine.DCB{}, err
	}
	if len(f.Netdevs) == 0 {
		return machine.DCB{}, failure.New(failure.Conflict, "NIC %s has no interface on the host, without which its port cannot be set", nic)
	}
	host, err := n.kernel.Host()
	if err != nil {
		return machine.DCB{}, err
	}
	defer host.Close()
	name := f.Netdevs[0].Name
	err = host.SetDCB(name, want)
	is := machine.DCB{}
	if err == nil {
		is, err = host.DCB(name)
	}
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return machine.DCB{}, failure.New(failure.Unsupported, "NIC %s: DCB settings of %s: %w: the driver has none, or the firmware keeps them (virtual functions have their NIC's)", nic, name, err)
	case err != nil:
		return machine.DCB{}, refused(err, "NIC %s: DCB settings of %s", nic, name)
	}
	if err := is.Misses(&want); err != nil {
		return is, failure.New(failure.Conflict, "NIC %s: %s took other DCB settings than those given: %w: look whether an LLDP agent or the card's firmware manages them", nic, name, err)
	}
	return is, nil
}
