package machine

// Network is what the administrator says of a node's NICs.
type Network struct {
	// Pairs are declared where the machine hides which NIC is next to which GPU. A GPU
	// that is in one has no other pairs, and its NIC is in none with other GPUs, unless
	// they are declared as well.
	Pairs []DeclaredPair `json:"pairs,omitempty"`
	// Rails numbers NICs. Without any, the order of the addresses does.
	Rails map[Address]int `json:"rails,omitempty"`
	// VFs are how many virtual functions NICs are to have.
	VFs []VFCount `json:"vfs,omitempty"`
	// Lossless is what the port of each NIC that is offered is to be set to, but for
	// what is zero in it. Nil: ports stay as they are.
	Lossless *DCB `json:"lossless,omitempty"`
}

// VFCount is how many virtual functions a NIC is to have.
type VFCount struct {
	NIC   Address `json:"nic"`
	Count int     `json:"count"`
}

// DeclaredPair is a GPU and a NIC next to it.
type DeclaredPair struct {
	GPU Address `json:"gpu"`
	NIC Address `json:"nic"`
}

// Closeness of a GPU and a NIC, in nvidia-smi's words (nvidia-smi(1), "topo -m").
type Closeness string

// From the nearest to the farthest.
const (
	ClosenessDeclared Closeness = "declared" // the administrator's word
	ClosenessPIX      Closeness = "PIX"      // at most one PCIe bridge
	ClosenessPXB      Closeness = "PXB"      // several PCIe bridges, but not the host bridge
	ClosenessPHB      Closeness = "PHB"      // one PCIe host bridge
	ClosenessNODE     Closeness = "NODE"     // one NUMA node
	ClosenessSYS      Closeness = "SYS"      // between NUMA nodes
)
