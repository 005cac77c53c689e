package simulator

import (
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// NICState is what can change of a NIC.
type NICState struct {
	FunctionState
	// VFs are its virtual functions, by their index.
	VFs []FunctionState `json:"vfs,omitempty"`
	DCB machine.DCB     `json:"dcb,omitzero"`
	// NoLink says that nothing is at the cable's other end, Unplugged that the card has
	// gone from the bus.
	NoLink    bool `json:"noLink,omitempty"`
	Unplugged bool `json:"unplugged,omitempty"`
	Trouble
}

// FunctionState is what can change of a PCI function, a NIC's or a VF's.
type FunctionState struct {
	// Generation is another one each time that the function comes: a card that was
	// plugged in again is not what it was.
	Generation int           `json:"generation,omitempty"`
	Netdevs    []NetdevState `json:"netdevs,omitempty"`
	// RDMA is its RDMA device's name; empty: it has none. Verbs is N of its uverbsN, and
	// MADs those of its umadN, one a port.
	RDMA  string `json:"rdma,omitempty"`
	Verbs int    `json:"verbs,omitempty"`
	MADs  []int  `json:"mads,omitempty"`
	// RDMANamespace is the network namespace that has it; empty: the host's.
	RDMANamespace string `json:"rdmaNamespace,omitempty"`
}

// NetdevState is a network interface as it is.
type NetdevState struct {
	Name      string          `json:"name"`
	MAC       string          `json:"mac"`
	MTU       int             `json:"mtu"` // bytes
	Up        bool            `json:"up,omitempty"`
	Addresses []string        `json:"addresses,omitempty"`
	Routes    []machine.Route `json:"routes,omitempty"`
	// Namespace is the network namespace that has it; empty: the host's.
	Namespace string `json:"namespace,omitempty"`
}

// Network is the machine's network beside its NICs.
type Network struct {
	// RDMAExclusive says that an RDMA device belongs to one network namespace
	// (rdma-system(8)).
	RDMAExclusive bool `json:"rdmaExclusive,omitempty"`
	// Interfaces are others' on the host, that have a name which no NIC can have.
	Interfaces []string `json:"interfaces,omitempty"`
	// Generations is how many functions have come since boot.
	Generations int `json:"generations,omitempty"`
	// Sealed are network namespaces that cannot be reached, or are just ending.
	Sealed []string `json:"sealed,omitempty"`
}

// NIC is one NIC of a State: what it is and how it is.
type NIC struct {
	Index int
	// Machine is the machine's name.
	Machine string
	Spec    *NICSpec
	Model   *model.NIC
	*NICState
}

// NIC returns the i-th NIC.
func (s *State) NIC(i int) NIC {
	spec := &s.Spec.NICs[i]
	m, err := model.LookupNIC(spec.Model)
	if err != nil {
		panic("simulator: unchecked state: " + err.Error()) // State.check has seen it
	}
	return NIC{Index: i, Machine: s.Spec.Name, Spec: spec, Model: m, NICState: &s.NICs[i]}
}

// Functions are the NIC's own and its VFs', with their addresses; none of a card that
// is unplugged.
func (n NIC) Functions() []Function {
	if n.Unplugged {
		return nil
	}
	all := []Function{{Address: n.Spec.Address, VF: -1, NIC: n, FunctionState: &n.NICState.FunctionState}}
	for i := range n.VFs {
		all = append(all, Function{Address: VFAddress(n.Spec.Address, i), VF: i, NIC: n, FunctionState: &n.VFs[i]})
	}
	return all
}

// Function is a PCI function of a NIC.
type Function struct {
	Address machine.Address
	// VF is its index among the NIC's virtual functions, or -1 for the NIC's own.
	VF  int
	NIC NIC
	*FunctionState
}

// String is what the driver's people call it.
func (f Function) String() string {
	if f.VF < 0 {
		return "NIC " + f.Address.String()
	}
	return "VF " + f.Address.String()
}

// Functions are those of all NICs, in order.
func (s *State) Functions() []Function {
	var all []Function
	for i := range s.NICs {
		all = append(all, s.NIC(i).Functions()...)
	}
	return all
}

// function returns the one at that address.
func (s *State) function(address machine.Address) (Function, error) {
	for _, f := range s.Functions() {
		if f.Address == address {
			return f, nil
		}
	}
	return Function{}, failure.New(failure.Absent, "PCI function %s is not there, or no NIC's", address)
}

// FindNIC returns the NIC that name means: a PCI address, an interface or an RDMA
// device, as they were after boot.
func (s *State) FindNIC(name string) (NIC, error) {
	var known []string
	for i := range s.Spec.NICs {
		n := &s.Spec.NICs[i]
		isName := func(d NetdevSpec) bool { return d.Name == name }
		if strings.EqualFold(n.Address.String(), name) || name != "" && n.RDMA == name || slices.ContainsFunc(n.Netdevs, isName) {
			return s.NIC(i), nil
		}
		known = append(known, n.Address.String())
	}
	return NIC{}, failure.New(failure.Absent, "machine %q has no NIC %q: name one by PCI address (%q), interface or RDMA device",
		s.Spec.Name, name, known)
}

// bootNICs brings the NICs up as they are described.
func (s *State) bootNICs() {
	s.Network = Network{RDMAExclusive: s.Network.RDMAExclusive}
	s.NICs = make([]NICState, len(s.Spec.NICs))
	for i := range s.Spec.NICs {
		s.plug(s.NIC(i))
	}
	for i := range s.Spec.NICs { // the administrator's, after the driver's
		s.makeVFs(s.NIC(i), s.Spec.NICs[i].NumVFs)
	}
}

// plug is what happens where a NIC's driver finds it.
func (s *State) plug(n NIC) {
	*n.NICState = NICState{Trouble: n.Trouble, DCB: n.Spec.DCB, NoLink: n.NoLink}
	n.Generation = s.generation()
	for _, d := range n.Spec.Netdevs {
		up := NetdevState{Name: d.Name, MAC: d.MAC, MTU: d.MTU, Up: !d.Down, Addresses: slices.Clone(d.Addresses), Routes: slices.Clone(d.Routes)}
		if s.nameTaken(d.Name) {
			up.Name = s.freeName("eth")
		}
		n.Netdevs = append(n.Netdevs, up)
	}
	if n.Spec.RDMA != "" {
		n.RDMA = n.Spec.RDMA
		s.numberRDMA(&n.FunctionState, n)
	}
}

func (s *State) generation() int {
	s.Network.Generations++
	return s.Network.Generations
}

// numberRDMA gives an RDMA device's character devices the lowest free numbers.
func (s *State) numberRDMA(f *FunctionState, n NIC) {
	verbs, mads := map[int]bool{}, map[int]bool{}
	for _, other := range s.Functions() {
		if other.RDMA == "" || other.FunctionState == f {
			continue
		}
		verbs[other.Verbs] = true
		for _, m := range other.MADs {
			mads[m] = true
		}
	}
	f.Verbs = lowest(verbs)
	for range n.ports() {
		if n.Model.RDMA.MAD {
			f.MADs = append(f.MADs, lowest(mads))
			mads[f.MADs[len(f.MADs)-1]] = true
		}
	}
}

func lowest(taken map[int]bool) int {
	n := 0
	for taken[n] {
		n++
	}
	return n
}

// ports is how many its RDMA device has.
func (n NIC) ports() int { return max(n.Model.Ports, len(n.Spec.Netdevs)) }

// InfiniBand says whether its ports are.
func (n NIC) InfiniBand() bool { return n.Spec.LinkLayer == machine.LinkInfiniBand }

// nameTaken says whether an interface on the host has that name.
func (s *State) nameTaken(name string) bool { return s.owner(name, "") != "" }

// owner says whose interface has that name in a network namespace; empty: nobody's.
func (s *State) owner(name, namespace string) string {
	for _, f := range s.Functions() {
		for _, d := range f.Netdevs {
			if d.Name == name && d.Namespace == namespace {
				return f.String()
			}
		}
	}
	if namespace == "" && slices.Contains(s.Network.Interfaces, name) {
		return "another interface"
	}
	return ""
}

func (s *State) freeName(prefix string) string { return FreeName(prefix, s.nameTaken) }

// checkNICs makes a state that was read safe to use.
func (s *State) checkNICs() error {
	if len(s.NICs) != len(s.Spec.NICs) {
		return failure.New(failure.Corrupt, "state of %d NICs for a machine of %d: make the machine again with dovetail-sim create",
			len(s.NICs), len(s.Spec.NICs))
	}
	for _, n := range s.Spec.NICs {
		if _, err := model.LookupNIC(n.Model); err != nil {
			return failure.New(failure.Corrupt, "NIC %s: %w", n.Address, err)
		}
	}
	return nil
}
