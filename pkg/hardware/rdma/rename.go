package rdma

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
)

// rename takes an interface down for it, as older kernels want it.
func rename(in kernel.Namespace, links []kernel.Link, link *kernel.Link, name string) error {
	if link.Name == name {
		return nil
	}
	if other, taken := named(links, name); taken {
		return failure.New(failure.Conflict, "%s cannot be called %s: interface %d (%s) is called so: rename that one", link.Name, name, other.Index, other.MAC)
	}
	if err := takeDown(in, link); err != nil {
		return err
	}
	if err := in.SetName(link.Index, name); err != nil {
		return refused(err, "name %s for %s", name, link.Name)
	}
	link.Name = name
	return nil
}

// lengthMAC is that of Ethernet's hardware addresses as text. InfiniBand's are not to be set.
const lengthMAC = len("00:00:00:00:00:00")

// readdress gives an interface its hardware address, which a container may have changed, so
// that the next does not have it. A card that refuses has been given the address by others: a VF's
// is its NIC's to set.
func readdress(in kernel.Namespace, link *kernel.Link, mac string) error {
	if len(mac) != lengthMAC || link.MAC == mac {
		return nil
	}
	if err := takeDown(in, link); err != nil {
		return err
	}
	err := in.SetMAC(link.Index, mac)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	if err != nil {
		return refused(err, "hardware address %s of %s", mac, link.Name)
	}
	link.MAC = mac
	return nil
}

func takeDown(in kernel.Namespace, link *kernel.Link) error {
	if !link.Up {
		return nil
	}
	if err := in.SetUp(link.Index, false); err != nil {
		return refused(err, "%s down", link.Name)
	}
	link.Up = false
	return nil
}
