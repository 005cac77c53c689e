package kernel

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// rdmaHandle opens the socket when it is first needed: a kernel without RDMA has none.
func (n *namespace) rdmaHandle() (*netlink.Handle, error) {
	if n.rdma == nil {
		err := n.inside(func() (err error) {
			n.rdma, err = netlink.NewHandle(unix.NETLINK_RDMA)
			return err
		})
		if err != nil {
			n.rdma = nil
			return nil, err
		}
	}
	return n.rdma, nil
}

// withoutRDMA says whether an error means that the kernel has no RDMA at all.
func withoutRDMA(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOPROTOOPT)
}

// RDMADevices implements Namespace.
func (n *namespace) RDMADevices() ([]RDMADevice, error) {
	handle, err := n.rdmaHandle()
	if withoutRDMA(err) {
		return nil, nil
	}
	var found []*netlink.RdmaLink
	if err == nil {
		found, err = again(handle.RdmaLinkList)
	}
	if err != nil {
		return nil, fmt.Errorf("listing RDMA devices: %w", err)
	}
	devices := make([]RDMADevice, 0, len(found))
	for _, d := range found {
		devices = append(devices, RDMADevice{Index: int(d.Attrs.Index), Name: d.Attrs.Name})
	}
	return devices, nil
}

// RDMAExclusive implements Namespace. Kernels before 5.2 do not know the question, and
// have only the shared mode.
func (n *namespace) RDMAExclusive() (bool, error) {
	handle, err := n.rdmaHandle()
	if withoutRDMA(err) {
		return false, nil
	}
	var mode string
	if err == nil {
		mode, err = handle.RdmaSystemGetNetnsMode()
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the RDMA subsystem's mode: %w", err)
	}
	return mode == "exclusive", nil
}

// MoveRDMA implements Namespace. The kernel takes the device to be in the calling
// thread's namespace, and not in its socket's (rdma_dev_change_netns, Linux 6.12).
func (n *namespace) MoveRDMA(index int, to Namespace) error {
	target, ok := to.(*namespace)
	if !ok {
		return unix.EINVAL
	}
	handle, err := n.rdmaHandle()
	if err != nil {
		return err
	}
	link := &netlink.RdmaLink{Attrs: netlink.RdmaLinkAttrs{Index: uint32(index)}}
	return n.inside(func() error { return handle.RdmaLinkSetNsFd(link, uint32(target.fd())) })
}
