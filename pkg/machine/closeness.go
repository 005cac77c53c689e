package machine

import "slices"

// Closenesses are all of them, from the nearest to the farthest.
var Closenesses = []Closeness{ClosenessDeclared, ClosenessPIX, ClosenessPXB, ClosenessPHB, ClosenessNODE, ClosenessSYS}

// rank orders closenesses, the nearest first.
func (c Closeness) rank() int { return slices.Index(Closenesses, c) }

// Closeness of the devices at two places, from the PCI tree, as "nvidia-smi topo -m"
// has it: never ClosenessDeclared. Devices of one root between which the machine says
// that there is a border of NUMA nodes are ClosenessSYS.
func (l *Location) Closeness(other *Location) Closeness {
	numa := l.NUMANode >= 0 && other.NUMANode >= 0
	switch {
	case numa && l.NUMANode != other.NUMANode:
		return ClosenessSYS
	case l.PCIeRoot != "" && l.PCIeRoot == other.PCIeRoot:
		return l.belowRoot(other)
	case numa:
		return ClosenessNODE
	}
	return ClosenessSYS
}

// belowRoot is for two devices of one root: the bridges that both are behind are in
// neither's way to the other, but for the last, in which the ways meet.
func (l *Location) belowRoot(other *Location) Closeness {
	common := 0
	for common < min(len(l.Bridges), len(other.Bridges)) && l.Bridges[common] == other.Bridges[common] {
		common++
	}
	switch {
	case common == 0:
		return ClosenessPHB
	case max(len(l.Bridges), len(other.Bridges)) <= common+1:
		return ClosenessPIX
	}
	return ClosenessPXB
}

// sameNUMANode says whether both are known to be on one.
func (l *Location) sameNUMANode(other *Location) bool {
	return l.NUMANode >= 0 && l.NUMANode == other.NUMANode
}
