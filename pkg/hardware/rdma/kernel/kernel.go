// Package kernel is what the RDMA adapter asks of Linux beside the files of sysfs:
// network interfaces, addresses, routes, RDMA devices and DCB of a network namespace,
// by netlink. Errors are errnos, wrapped; what they mean is for the adapter to say.
package kernel

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Kernel opens network namespaces. Calls may come from any goroutine.
type Kernel interface {
	// Host opens the namespace that NICs are at home in.
	Host() (Namespace, error)
	// Open opens the namespace that a file stands for: "/proc/4711/ns/net",
	// "/run/netns/blue".
	Open(path string) (Namespace, error)
	// Others lists a path for each other namespace that can be found.
	Others() []string
	// Watch calls notify for each event in the host's namespace until ctx ends, and
	// then returns nil.
	Watch(ctx context.Context, notify func(Event)) error
}

// Namespace is an open network namespace. It is for one goroutine at a time.
type Namespace interface {
	ID() ID
	Close() error

	Links() ([]Link, error)
	// SetName, SetMTU (bytes) and SetUp change a link. A link must be down to be renamed
	// on kernels before 6.2.
	SetName(index int, name string) error
	SetMTU(index, mtu int) error
	SetUp(index int, up bool) error
	// SetMAC gives a link that is down another hardware address of Ethernet.
	SetMAC(index int, mac string) error
	// SetReception sets what a link receives beside what is for it.
	SetReception(index int, promiscuous, allMulticast bool) error
	// DetachXDP takes away the program of a link that is attached so. EBUSY where a
	// program holds it (bpf(2), BPF_LINK_CREATE): it goes with that one.
	DetachXDP(index int, attached uint8) error
	// MoveLink moves a link to another namespace and gives it a name there, which may be
	// a pattern ("dev%d"). It loses its addresses, routes, sysctls and DCB application
	// table, and is down then. EEXIST where the name is taken: the link has moved
	// nonetheless, but for one whose old name is taken too.
	MoveLink(index int, to Namespace, name string) error

	// Addresses are all in the namespace.
	Addresses() ([]Address, error)
	// AddAddress adds one with its prefix. EACCES where the link has no IPv6.
	AddAddress(index int, address string) error
	// Sysctls are those of a link that say what becomes of its packets and are not 0, by
	// their names below net without the link's: "ipv4/conf/rp_filter".
	Sysctls(index int) (map[string]int, error)
	// SetSysctl sets one. ENOENT where there is none of that name.
	SetSysctl(link, name string, value int) error
	// Routes are all unicast ones, of all tables but the local one.
	Routes() ([]Route, error)
	// AddRoute adds one through a link, beside others to the same prefix.
	AddRoute(index int, route machine.Route) error
	// DefaultTables are the numbers of the tables that every packet may be routed by: those
	// of rules without a selector.
	DefaultTables() ([]int, error)

	// RDMADevices are those that can be used in the namespace: all in shared mode.
	RDMADevices() ([]RDMADevice, error)
	// RDMAExclusive says whether an RDMA device belongs to one namespace
	// (rdma-system(8)).
	RDMAExclusive() (bool, error)
	MoveRDMA(index int, to Namespace) error

	// DCB reads what a link's port does. EOPNOTSUPP where it does not say.
	DCB(link string) (machine.DCB, error)
	// SetDCB sets what is not zero.
	SetDCB(link string, want machine.DCB) error
}

// ID tells namespaces apart (namespaces(7), device and inode number).
type ID struct{ Device, Inode uint64 }

// Link is a network interface.
type Link struct {
	Index int
	Name  string
	// MAC and PermanentMAC as text; empty where it has none.
	MAC, PermanentMAC string
	MTU, MaxMTU       int // bytes; MaxMTU 0: it does not say
	Up, Carrier       bool
	// Promiscuous and AllMulticast are what somebody has set, and not for how long a
	// program listens (packet(7)).
	Promiscuous, AllMulticast bool
	// XDP is how an XDP program is attached (linux/if_link.h, XDP_ATTACHED_*); 0: none is.
	XDP uint8
	// Kind of software that it is: "vlan", "veth"; empty for hardware.
	Kind string
	// Parent is the name of the device that it is of, of whichever bus: "0000:1a:00.0".
	Parent string
	// Master is the index of the bond, bridge, … that it is part of, and Lower of the
	// link that it is on top of; 0: none, or one in another namespace.
	Master, Lower int
}

// Address of a link.
type Address struct {
	Link    int
	Address string // with its prefix: "10.0.0.1/24"
	// Kernel says that the kernel makes it by itself.
	Kernel bool
}

// Route through a link.
type Route struct {
	machine.Route
	Link int
	// Kernel says that the kernel makes it by itself.
	Kernel bool
	// Shared says that it goes through other links too (multipath).
	Shared bool
}

// RDMADevice is one that a namespace has.
type RDMADevice struct {
	Index int
	Name  string
}

// Event is something that changed. It tells what it is about as far as that is known.
type Event struct {
	// Link is the interface's name, and Index its number; empty and 0 for other events.
	Link  string
	Index int
	// Kind of the interface, as Link.Kind.
	Kind string
}
