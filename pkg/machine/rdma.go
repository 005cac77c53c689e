package machine

import "strings"

// RDMADevice is what verbs are called on.
type RDMADevice struct {
	Name string `json:"name"` // "mlx5_0"
	// Nodes are its own character devices: "/dev/infiniband/uverbs0", and umad and
	// issm where the kernel has them. Those of connection management are the node's
	// (RDMANodes of the machine).
	Nodes []string   `json:"nodes,omitempty"`
	Ports []RDMAPort `json:"ports,omitempty"`
}

// RDMAPort is one port; Ethernet NICs have one.
type RDMAPort struct {
	Number    int       `json:"number"` // from 1
	LinkLayer LinkLayer `json:"linkLayer"`
	// State is the kernel's word: PortActive, "DOWN", …
	State string `json:"state"`
	Rate  int    `json:"rate,omitempty"` // Gb/s
	// GIDs that are there, in the order of their indices.
	GIDs []GID `json:"gids,omitempty"`
}

// PortActive is the state of a port that works.
const PortActive = "ACTIVE"

// GID is one entry of a port's table.
type GID struct {
	Index int `json:"index"`
	// GID is eight groups of hexadecimal digits, as sysfs has it.
	GID string `json:"gid"`
	// Type is the kernel's word: "IB/RoCE v1" or "RoCE v2".
	Type string `json:"type"`
	// Netdev that it is of; empty for InfiniBand.
	Netdev string `json:"netdev,omitempty"`
}

// GIDs of RoCE v2, as sysfs names their type.
const gidRoCEv2 = "RoCE v2"

// RoCEv2 is the GID by which others reach the port over RoCE v2: of an IPv4 address, or
// else of a routable IPv6 address, or else any.
func (p *RDMAPort) RoCEv2() (GID, bool) {
	var best GID
	found := 0
	for _, gid := range p.GIDs {
		if gid.Type != gidRoCEv2 {
			continue
		}
		rank := 2
		if strings.HasPrefix(gid.GID, "0000:0000:0000:0000:0000:ffff:") {
			rank = 3
		} else if strings.HasPrefix(gid.GID, "fe80:") {
			rank = 1
		}
		if rank > found {
			best, found = gid, rank
		}
	}
	return best, found > 0
}

// LinkLayer of an RDMA port.
type LinkLayer string

// Link layers, as sysfs has them.
const (
	LinkEthernet   LinkLayer = "Ethernet"
	LinkInfiniBand LinkLayer = "InfiniBand"
)
