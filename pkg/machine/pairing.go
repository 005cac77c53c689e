package machine

import (
	"cmp"
	"slices"
)

// pairing is a GPU and its part of a NIC: a lane.
type pairing struct {
	gpu       *GPU
	nic       *NIC
	vf        *VF // that goes with the lane, where the NIC has any
	closeness Closeness
}

// pairings are in the order in which they are offered: the nearest first. Each GPU has
// the NICs of the administrator's declaration, or else a share of those that are nearest
// to it. It has that share in MIG mode too, and when it is sick: nobody else's share
// changes by it.
func (m *Machine) pairings() []pairing {
	declared := m.declared()
	all := slices.Clone(declared)
	groups := map[string][]*GPU{} // by what is nearest to them
	nearest := map[string][]*NIC{}
	var order []string
	for i := range m.GPUs {
		gpu := &m.GPUs[i]
		if m.Network.declares(gpu.Address) {
			continue
		}
		nics := m.nearest(gpu)
		key := ""
		for _, nic := range nics {
			key += nic.Address.String() + " "
		}
		if groups[key] == nil {
			nearest[key], order = nics, append(order, key)
		}
		groups[key] = append(groups[key], gpu)
	}
	for _, key := range order {
		all = append(all, deal(groups[key], nearest[key])...)
	}
	slices.SortStableFunc(all, func(a, b pairing) int {
		return cmp.Or(a.gpu.Address.Compare(b.gpu.Address), a.nic.Address.Compare(b.nic.Address))
	})
	assignVFs(all)
	slices.SortStableFunc(all, func(a, b pairing) int { return cmp.Compare(a.closeness.rank(), b.closeness.rank()) })
	return all
}

// nearest are the offered NICs than which none is nearer to the GPU. Of those that are
// as near, they are the ones on its NUMA node, if any. Those that are declared for other
// GPUs are not among them: the administrator has decided about them.
func (m *Machine) nearest(gpu *GPU) []*NIC {
	var nics []*NIC
	best := len(Closenesses)
	for i := range m.NICs {
		nic := &m.NICs[i]
		if !nic.Offered() {
			continue
		}
		rank := gpu.Location.Closeness(&nic.Location).rank()
		if rank < best {
			nics, best = nil, rank
		}
		if rank == best {
			nics = append(nics, nic)
		}
	}
	near := func(nic *NIC) bool { return gpu.Location.sameNUMANode(&nic.Location) }
	if slices.ContainsFunc(nics, near) {
		nics = slices.DeleteFunc(nics, func(nic *NIC) bool { return !near(nic) })
	}
	return slices.DeleteFunc(nics, func(nic *NIC) bool { return m.Network.takes(nic.Address) })
}

// deal gives GPUs that have the same NICs near them each its own: several where there
// are more NICs than GPUs, and one of several GPUs' where there are fewer. Both are in
// the order of their addresses.
func deal(gpus []*GPU, nics []*NIC) []pairing {
	each, more := len(nics)/len(gpus), len(nics)%len(gpus)
	var dealt []pairing
	for i, gpu := range gpus {
		first, end := i*each+min(i, more), (i+1)*each+min(i+1, more)
		if each == 0 {
			first = i * len(nics) / len(gpus)
			end = min(first+1, len(nics))
		}
		for _, nic := range nics[first:end] {
			dealt = append(dealt, pairing{gpu: gpu, nic: nic, closeness: gpu.Location.Closeness(&nic.Location)})
		}
	}
	return dealt
}

// assignVFs gives each lane of a NIC with virtual functions one of them: the first lane
// the first VF, whatever becomes of others. Where that one cannot be used, the lane has
// one that is left over, and in the last resort another lane's: the counters keep the
// two apart.
func assignVFs(all []pairing) {
	lanes := map[*NIC][]*pairing{}
	for i := range all {
		if nic := all[i].nic; len(nic.VFs) > 0 {
			lanes[nic] = append(lanes[nic], &all[i])
		}
	}
	for nic, lanes := range lanes {
		var spare []*VF
		for i := range nic.VFs {
			switch vf := &nic.VFs[i]; {
			case !vf.Offered():
			case i < len(lanes):
				lanes[i].vf = vf
			default:
				spare = append(spare, vf)
			}
		}
		usable := nic.offeredVFs()
		for i, lane := range lanes {
			switch {
			case lane.vf != nil:
			case len(spare) > 0:
				lane.vf, spare = spare[0], spare[1:]
			default:
				lane.vf = usable[i%len(usable)]
			}
		}
	}
}
