package sysfs

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Function is a PCI function of a NIC.
type Function struct {
	Address machine.Address
	// Vendor and Device are PCI's numbers.
	Vendor, Device uint16
	// Driver is empty where none is bound.
	Driver string
	// Netdevs are the interfaces that are in sysfs's network namespace, in the order of
	// their ports.
	Netdevs []Netdev
	// RDMA is nil where there is no RDMA device, wherever it is.
	RDMA *RDMA
	// PF is the address of a virtual function's physical one.
	PF *machine.Address
	// MaxVFs, and VFs by their index.
	MaxVFs int
	VFs    []VF

	class uint32
}

// Netdev is what sysfs alone tells of a network interface.
type Netdev struct {
	Name  string
	Speed int // Mb/s; 0: unknown
}

// VF is a virtual function's place.
type VF struct {
	Index   int
	Address machine.Address
}

// network is the class of NICs, and ethernet that of one kind of them (PCI Code and ID
// Assignment Specification).
const (
	network  = "0x02"
	ethernet = 0x020000
)

// NICs lists the functions that are NICs, without virtual ones, in their order.
func (t *Tree) NICs() ([]machine.Address, error) {
	devices := filepath.Join(t.root, "bus/pci/devices")
	names, err := t.mustList(devices)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a machine without PCI
	}
	if err != nil {
		return nil, err
	}
	var found []machine.Address
	for _, name := range names {
		address, err := machine.ParseAddress(name)
		if err != nil || !strings.HasPrefix(t.read(devices, name, "class"), network) {
			continue
		}
		if t.link(devices, name, "physfn") == "" {
			found = append(found, address)
		}
	}
	slices.SortFunc(found, machine.Address.Compare)
	return found, nil
}

// Function reads one. failure.Absent where it is not there, or goes just now.
func (t *Tree) Function(address machine.Address) (Function, error) {
	dir := t.device(address)
	names, err := t.mustList(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Function{}, failure.New(failure.Absent, "PCI function %s is not there: it has no directory in %s", address, filepath.Dir(dir))
	}
	if err != nil {
		return Function{}, err
	}
	f := Function{Address: address, Vendor: uint16(t.hex(dir, "vendor")), Device: uint16(t.hex(dir, "device")), class: t.hex(dir, "class")}
	nets := ""
	for _, name := range names {
		switch {
		case name == "driver":
			f.Driver = t.link(dir, name)
		case name == "net":
			nets = name
		case strings.HasPrefix(name, "virtio") && nets == "": // a bus between
			nets = filepath.Join(name, "net")
		case name == "physfn":
			if pf, err := machine.ParseAddress(t.link(dir, name)); err == nil {
				f.PF = &pf
			}
		case name == "sriov_totalvfs":
			f.MaxVFs = t.number(dir, name)
		case strings.HasPrefix(name, "virtfn"):
			f.VFs = append(f.VFs, t.vf(dir, name)...)
		}
	}
	slices.SortFunc(f.VFs, func(a, b VF) int { return cmp.Compare(a.Index, b.Index) })
	if nets != "" {
		f.Netdevs = t.netdevs(filepath.Join(dir, nets))
	}
	f.RDMA = t.rdma(dir, names)
	return f, nil
}

// vf reads a link "virtfn3".
func (t *Tree) vf(dir, name string) []VF {
	index, err := strconv.Atoi(strings.TrimPrefix(name, "virtfn"))
	if err != nil {
		return nil
	}
	address, err := machine.ParseAddress(t.link(dir, name))
	if err != nil {
		return nil
	}
	return []VF{{Index: index, Address: address}}
}

// SetVFs writes the number of virtual functions.
func (t *Tree) SetVFs(address machine.Address, n int) error {
	return os.WriteFile(filepath.Join(t.device(address), "sriov_numvfs"), []byte(strconv.Itoa(n)), 0)
}

// Ethernet says whether the function's RDMA device is of the kind that needs a network
// interface (RoCE, iWARP).
func (f Function) Ethernet() bool {
	if f.RDMA == nil {
		return false
	}
	if len(f.RDMA.Ports) == 0 {
		return f.class == ethernet
	}
	return slices.ContainsFunc(f.RDMA.Ports, func(p machine.RDMAPort) bool { return p.LinkLayer == machine.LinkEthernet })
}
