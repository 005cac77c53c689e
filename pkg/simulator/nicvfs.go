package simulator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// makeVFs gives a NIC that has none its virtual functions. Their interfaces are down,
// as nobody has brought them up.
func (s *State) makeVFs(n NIC, count int) {
	for i := range count {
		n.VFs = append(n.VFs, FunctionState{Generation: s.generation()})
		vf := &n.VFs[i]
		address := VFAddress(n.Spec.Address, i)
		if len(n.Spec.Netdevs) > 0 {
			vf.Netdevs = []NetdevState{{Name: s.vfName(n, i), MAC: MAC(s.Spec.Name, address, 0), MTU: 1500}}
		}
		if n.RDMA != "" {
			vf.RDMA = FreeName(n.Model.RDMA.Prefix, s.rdmaTaken)
			s.numberRDMA(vf, n)
		}
	}
}

// vfName is a VF's interface's, from its NIC's: "enp24s0v3".
func (s *State) vfName(n NIC, vf int) string {
	base := n.Spec.Netdevs[0].Name
	if at := strings.LastIndex(base, "np"); at > 0 {
		base = base[:at]
	}
	name := fmt.Sprintf("%sv%d", base, vf)
	if len(name) > MaxInterfaceName || s.nameTaken(name) {
		return s.freeName("eth")
	}
	return name
}

// MaxInterfaceName is the longest name of a network interface: the kernel's IFNAMSIZ
// without its final zero.
const MaxInterfaceName = 15

// rdmaTaken says whether an RDMA device has that name, or one that can come back.
func (s *State) rdmaTaken(name string) bool {
	if slices.ContainsFunc(s.Spec.NICs, func(n NICSpec) bool { return n.RDMA == name }) {
		return true
	}
	for _, f := range s.Functions() {
		if f.RDMA == name {
			return true
		}
	}
	return false
}

// SetVFs gives a NIC virtual functions, or takes them away, as an administrator does by
// sriov_numvfs.
func (m *Machine) SetVFs(nic string, n int) error {
	return m.callNIC(nic, CallSetVFs, func(s *State, c NIC) error { return s.setVFs(c, n) })
}

func (s *State) setVFs(n NIC, count int) error {
	has := len(n.VFs)
	switch {
	case n.Spec.MaxVFs == 0:
		return failure.New(failure.Unsupported, "NIC %s cannot have virtual functions", n.Spec.Address)
	case count < 0 || count > n.Spec.MaxVFs:
		return failure.New(failure.Invalid, "NIC %s: %d virtual functions: give 0 to %d", n.Spec.Address, count, n.Spec.MaxVFs)
	case has == count:
		return nil
	case has != 0 && count != 0:
		return failure.New(failure.Conflict, "NIC %s has %d virtual functions, and %d can only follow 0: take away those that there are first",
			n.Spec.Address, has, count)
	}
	n.VFs = nil
	s.makeVFs(n, count)
	return nil
}

// SetVFs implements hardware.NICs.
func (c *NICs) SetVFs(ctx context.Context, nic machine.Address, n int) error {
	if err := c.wait(ctx, nic, CallSetVFs); err != nil {
		return err
	}
	return c.call(nic, CallSetVFs, func(s *State, f Function) error {
		if f.VF >= 0 {
			return failure.New(failure.Unsupported, "%s is a virtual function, and cannot have any: name its NIC", f)
		}
		return s.setVFs(f.NIC, n)
	})
}
