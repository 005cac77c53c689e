package claim

import (
	"cmp"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// NIC is what there is to tell of a prepared device's NIC.
type NIC struct {
	// InPod says that the interface goes into the Pod; Interface is then its name there,
	// else the host's. Empty: it has none.
	InPod     bool
	Interface string
	// MAC is the interface's hardware address; Addresses those that it has in the Pod,
	// with their prefix.
	MAC       string
	Addresses []string
	// RDMA is the RDMA device's name.
	RDMA string
	// Lossless says whether the port keeps the claim's traffic from being lost, and PFC
	// for which priorities it does so.
	Lossless bool
	PFC      []int
	// Closeness to the GPU, of a pair, and the NIC's rail; -1: it has none.
	Closeness machine.Closeness
	Rail      int
}

// tellNIC puts together what was planned and what the hook will do; nil without a NIC.
func tellNIC(planned *plan.NIC, told *cdi.NIC) *NIC {
	if planned == nil {
		return nil
	}
	n := &NIC{
		RDMA: planned.RDMA, Lossless: planned.Lossless, PFC: planned.PFC, Closeness: planned.Closeness, Rail: planned.Rail,
	}
	if planned.Netdev != nil {
		n.Interface, n.MAC = planned.Netdev.Name, planned.Netdev.MAC
	}
	if told != nil && told.Move != nil && len(told.Move.Home.Netdevs) > 0 {
		first := told.Move.Home.Netdevs[0]
		n.InPod, n.Interface, n.MAC = true, cmp.Or(told.Move.Name, first.Name), first.MAC
		if n.Addresses = told.Move.Addresses; len(n.Addresses) == 0 {
			n.Addresses = first.Addresses
		}
	}
	return n
}

// nic is what containers are given of a device's NIC; nil where it has none.
func (done doneSteps) nic(d plan.Device) *cdi.NIC {
	if d.NIC == nil {
		return nil
	}
	n := &cdi.NIC{Name: d.NIC.Name, RDMA: d.NIC.RDMA, Nodes: d.NIC.Nodes, TrafficClass: d.NIC.TrafficClass, GIDIndex: d.NIC.GIDIndex}
	i := slices.IndexFunc(done, func(s doneStep) bool { return s.Kind == plan.ReserveNIC && s.Device == d.NIC.Name && s.Home != nil })
	if i < 0 || !d.NIC.Reserved {
		return n
	}
	if home := done[i].Home; len(home.Netdevs) > 0 || home.RDMAMoves {
		n.Move = order(*home, d.NIC.Interface)
		n.Move.Nodes = d.NIC.Nodes
	}
	return n
}

// order is the hook's. Routes without addresses are through the host's.
func order(home machine.NICHome, to *plan.Interface) *hardware.NICMove {
	move := &hardware.NICMove{Home: home}
	if to == nil {
		return move
	}
	move.Name, move.MTU, move.Addresses, move.Routes = to.Name, to.MTU, to.Addresses, to.Routes
	if len(to.Routes) > 0 && len(to.Addresses) == 0 && len(home.Netdevs) > 0 {
		move.Addresses = home.Netdevs[0].Addresses
	}
	return move
}
