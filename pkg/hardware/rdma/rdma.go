// Package rdma is the node's network cards: what they are, from sysfs and netlink, and
// how their interfaces and RDMA devices go into Pods and come back. It implements
// hardware.NICs and is the only importer of netlink libraries.
//
// Which capabilities what needs: CAP_NET_ADMIN all changes of interfaces, addresses,
// routes, DCB and RDMA devices; CAP_SYS_ADMIN entering another network namespace: the
// host's, where the process is not in it, and those that something is brought back from;
// CAP_SYS_PTRACE finding the namespaces of processes of other users. Making virtual
// functions needs sysfs mounted so that it can be written.
package rdma

import (
	"cmp"
	"net/netip"
	"sync"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/kernel"
	"github.com/dovetail-dra/dovetail/pkg/hardware/rdma/sysfs"
	"github.com/dovetail-dra/dovetail/pkg/lock"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/patience"
)

// Options say where the kernel's files are. The zero value is for a process on the host.
type Options struct {
	// SysfsRoot and ProcRoot are where the host's sysfs and proc are mounted. Defaults:
	// "/sys" and "/proc".
	SysfsRoot, ProcRoot string
	// HostNamespace is the file of the network namespace that NICs are at home in. Empty:
	// this process's, which must then be the host's.
	HostNamespace string
	// NodeAddresses are those that the cluster knows the node by: the interface that has
	// one is an uplink, also where there is no default route.
	NodeAddresses []netip.Addr
	// LockFile is one that all processes use which move NICs (dovetail-hook, the agent): a
	// NIC is moved by one at a time. Empty: this process is the only one.
	LockFile string
	// Patience is how long a look at one NIC may take. Default: patience.Default.
	Patience time.Duration
	// ChangePatience is how long a move of it may take, or a change of its settings.
	// Default: 20 s.
	ChangePatience time.Duration
	// Kernel is for tests. Default: this machine's.
	Kernel kernel.Kernel
}

// NICs is hardware.NICs over sysfs and netlink.
type NICs struct {
	options Options
	tree    *sysfs.Tree
	kernel  kernel.Kernel
	calls   patience.Calls
	lock    lock.File

	mutex sync.Mutex             // guards what follows
	locks map[string]*sync.Mutex // instead of lock, where that is empty
	// names and indices of NICs' interfaces that have been seen.
	names   map[string]bool
	indices map[int]bool
	// last is what was read of each NIC when it was last readable.
	last map[machine.Address]result
}

var _ hardware.NICs = (*NICs)(nil)

// cure of a NIC, or the kernel's lock round all interfaces, that does not answer.
const cure = "look for the NIC driver's messages in the kernel's log, then reset the NIC or reboot the node"

// changePatience is far more than a move or a change of settings takes, and less than
// the kubelet's 45 s.
const changePatience = 20 * time.Second

// New reads nothing yet.
func New(options Options) *NICs {
	options.SysfsRoot = cmp.Or(options.SysfsRoot, "/sys")
	options.ProcRoot = cmp.Or(options.ProcRoot, "/proc")
	options.ChangePatience = cmp.Or(options.ChangePatience, changePatience)
	if options.Kernel == nil {
		options.Kernel = &kernel.Linux{HostNamespace: options.HostNamespace, ProcRoot: options.ProcRoot}
	}
	return &NICs{
		options: options,
		tree:    sysfs.New(options.SysfsRoot),
		kernel:  options.Kernel,
		calls:   patience.Calls{Limit: options.Patience, Cure: cure},
		lock:    lock.File(options.LockFile),
		locks:   map[string]*sync.Mutex{},
		names:   map[string]bool{},
		indices: map[int]bool{},
		last:    map[machine.Address]result{},
	}
}

// Reads is how many files of sysfs have been read.
func (n *NICs) Reads() int64 { return n.tree.Reads() }

// LockName is what LockFile is called in the directory that the agent and the hook share.
const LockName = "nic-moves"
