package hardware

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// NICs is access to the node's network cards. Calls may come from any goroutine. A
// PCI function is a NIC's or a VF's. Errors: failure.Absent for a function that is not
// there, failure.Unsupported where card or kernel cannot.
type NICs interface {
	// DescribeNICs reports the NICs as they are now, in the order of their addresses,
	// and what is wrong with any. One that cannot be read is a fault, not an error. A
	// NIC whose parts are in another network namespace is Away, and tells only what
	// its PCI function tells. With addresses, it reports no others than those.
	DescribeNICs(ctx context.Context, only ...machine.Address) (NICDescription, error)

	// NICHome reads what a function is on the host. failure.Conflict where a part of it
	// is in another network namespace, or where a move would destroy what NICHome has no
	// word for: an interface on top of one of its own, a route that goes through others
	// too.
	NICHome(ctx context.Context, function machine.Address) (machine.NICHome, error)

	// BringHome makes a function what it was: it is brought back from whatever network
	// namespace it is in, under its name, with its RDMA device, hardware address, MTU,
	// addresses, routes, DCB table and state. Doing it twice is no error. What has another's name in the
	// meantime is not renamed: failure.Conflict names it. failure.Busy where a namespace
	// has it that cannot be reached, or is just ending: WatchNICs tells when it has come.
	// failure.Absent where the function has gone from the machine.
	BringHome(ctx context.Context, home machine.NICHome) error

	// SetVFs gives a NIC that many virtual functions. The number that it has already
	// changes nothing; another one than 0 can only follow 0, so that VFs in use are not
	// lost: failure.Conflict.
	SetVFs(ctx context.Context, nic machine.Address, n int) error

	// SetDCB sets what is not zero in want, reads it back, and returns what the port
	// then has. failure.Conflict where the port took something else.
	SetDCB(ctx context.Context, nic machine.Address, want machine.DCB) (machine.DCB, error)

	// WatchNICs calls notify when a NIC, an interface, an RDMA device or a port comes,
	// goes or changes, until ctx ends, and then returns nil. It says that a look is
	// worthwhile.
	WatchNICs(ctx context.Context, notify func()) error
}

// NICDescription is what NICs.DescribeNICs answers.
type NICDescription struct {
	NICs []machine.NIC
	// RDMANodes and RDMAExclusive as machine.Machine has them.
	RDMANodes     []string
	RDMAExclusive bool
	Faults        []machine.Fault
}

// NICMove is how a function goes into a container: the order that dovetail-hook
// carries out, as it stands in CDI specifications.
type NICMove struct {
	// Home is where the function comes from, so that it is found again when the
	// container is restarted, by address and hardware address.
	Home machine.NICHome `json:"home"`
	// While names a file that is there as long as the claim is prepared: a container that
	// starts when it has been released takes the NIC nowhere. Empty: nobody looks.
	While string `json:"while,omitempty"`
	// Nodes are the character devices that the container gets. The numbers of the RDMA
	// device's own can change: where the kernel has given one to another device, the
	// order is refused.
	Nodes []string `json:"nodes,omitempty"`
	// Name of the (first) interface in the container; empty: as on the host.
	Name string `json:"name,omitempty"`
	// MTU in bytes; 0: as on the host.
	MTU int `json:"mtu,omitempty"`
	// Addresses with their prefix, and routes, of the first interface. Without any
	// addresses, the host's addresses, and its routes of the main table, go with it.
	Addresses []string        `json:"addresses,omitempty"`
	Routes    []machine.Route `json:"routes,omitempty"`
}
