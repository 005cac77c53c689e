package packing

import (
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// Tally is what first fit makes of all arrival orders on one GPU.
type Tally struct {
	// Combinations of profiles that fit on the GPU somehow, and the orders in which
	// their requests can arrive.
	Combinations, Arrivals int
	// Full counts the arrival orders of which every request was satisfied, by order
	// of publishing.
	Full []int
	// Worse and Better count the arrival orders of which the first order of publishing
	// satisfied fewer, or more, requests than each.
	Worse, Better []int
}

// search tries everything on one GPU of a model.
type search struct {
	mig *model.MIG
	// fits are the partitions of each profile, by order of publishing.
	fits  [][][]*machine.Partition
	tally Tally
}

// TryAll lets all combinations of profiles that fit on one GPU arrive in all orders,
// without departures.
func TryAll(m *model.Model, orders ...Order) Tally {
	one := Machine(m, 1)
	s := &search{mig: m.MIG, tally: Tally{
		Full: make([]int, len(orders)), Worse: make([]int, len(orders)), Better: make([]int, len(orders)),
	}}
	for _, o := range orders {
		fits := make([][]*machine.Partition, len(m.MIG.Profiles))
		for _, d := range o.Of(one) {
			fits[number(d)] = append(fits[number(d)], d.Partition)
		}
		s.fits = append(s.fits, fits)
	}
	s.combine(make([]int, len(m.MIG.Profiles)), 0)
	return s.tally
}

// combine goes through the combinations: how many of each profile.
func (s *search) combine(wanted []int, from int) {
	if from == len(wanted) {
		s.tally.Combinations++
		s.arrive(wanted, make([]GPU, len(s.fits)), make([]int, len(s.fits)), 0)
		return
	}
	for ; s.possible(wanted, 0, 0, GPU{}); wanted[from]++ {
		s.combine(wanted, from+1)
	}
	wanted[from] = 0
}

// possible says whether some placement satisfies what is wanted of the profiles from
// the given one on; of that one, partitions up to the given one are out of question.
func (s *search) possible(wanted []int, profile, partition int, g GPU) bool {
	if profile == len(wanted) {
		return true
	}
	if wanted[profile] == 0 {
		return s.possible(wanted, profile+1, 0, g)
	}
	wanted[profile]--
	defer func() { wanted[profile]++ }()
	for i := partition; i < len(s.fits[0][profile]); i++ {
		if p := s.fits[0][profile][i]; g.Room(p, s.mig) && s.possible(wanted, profile, i+1, g.With(p)) {
			return true
		}
	}
	return false
}

// arrive goes through the arrival orders of what is still wanted, on a GPU for each
// order of publishing, which have satisfied some requests of those that came.
func (s *search) arrive(wanted []int, gpus []GPU, satisfied []int, came int) {
	last := true
	for profile := range wanted {
		if wanted[profile] == 0 {
			continue
		}
		last = false
		nextGPUs, nextSatisfied := make([]GPU, len(gpus)), make([]int, len(gpus))
		for o, g := range gpus {
			nextGPUs[o], nextSatisfied[o] = g, satisfied[o]
			if p := firstFit(s.fits[o][profile], g, s.mig); p != nil {
				nextGPUs[o], nextSatisfied[o] = g.With(p), satisfied[o]+1
			}
		}
		wanted[profile]--
		s.arrive(wanted, nextGPUs, nextSatisfied, came+1)
		wanted[profile]++
	}
	if last {
		s.count(satisfied, came)
	}
}

func (s *search) count(satisfied []int, came int) {
	s.tally.Arrivals++
	for o, n := range satisfied {
		if n == came {
			s.tally.Full[o]++
		}
		if satisfied[0] < n {
			s.tally.Worse[o]++
		}
		if satisfied[0] > n {
			s.tally.Better[o]++
		}
	}
}

func firstFit(partitions []*machine.Partition, g GPU, of *model.MIG) *machine.Partition {
	for _, p := range partitions {
		if g.Room(p, of) {
			return p
		}
	}
	return nil
}
