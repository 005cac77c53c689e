package packing

import (
	"container/heap"
	"math/rand/v2"

	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// Kind of request, and how often it comes.
type Kind struct {
	Weight float64
	// Profile by its name, or any with that much Memory in bytes.
	Profile string
	Memory  uint64
}

func (k Kind) takes(p *machine.MIGProfile) bool {
	if k.Profile != "" {
		return p.Name == k.Profile
	}
	return p.Memory >= k.Memory
}

// Week is a week of requests that arrive and go at random, at nodes with equal GPUs.
// A request that does not fit anywhere is refused and does not come again.
type Week struct {
	Model       *model.Model
	Nodes, GPUs int
	Kinds       []Kind
	// Load is the share of all compute slices that would be out on average, were no
	// request refused.
	Load float64
	// InOrder tries the nodes in order; else each request tries them in a random one,
	// as the scheduler does where it sees no difference.
	InOrder bool
	Seed    uint64
}

// Outcome of a week. Scattered requests were refused although the free compute slices
// of all GPUs together would have sufficed.
type Outcome struct{ Requests, Refused, Scattered int }

// Times are in hours.
const (
	week     = 7 * 24.0
	duration = 4.0 // mean
)

// offer is a partition of one of a node's GPUs.
type offer struct {
	gpu       int
	partition *machine.Partition
}

// Run lets the week pass with partitions published in that order. The same seed gives
// the same requests for every order.
func (w Week) Run(o Order) Outcome {
	offers, slices, total := w.offers(o)
	mean := 0.0
	for i, k := range w.Kinds {
		mean += k.Weight / total * float64(slices[i])
	}
	rate := w.Load * float64(w.Nodes*w.GPUs*w.Model.MIG.Slices) / (mean * duration)
	random := rand.New(rand.NewPCG(w.Seed, 0))
	c := cluster{mig: w.Model.MIG, gpus: make([]GPU, w.Nodes*w.GPUs)}
	var out Outcome
	for now := random.ExpFloat64() / rate; now < week; now += random.ExpFloat64() / rate {
		kind, ends, nodes := w.draw(random, total), now+random.ExpFloat64()*duration, random.Perm(w.Nodes)
		c.leave(now)
		out.Requests++
		if c.place(offers[kind], w.GPUs, nodes, w.InOrder, ends) {
			continue
		}
		out.Refused++
		if c.free() >= slices[kind] {
			out.Scattered++
		}
	}
	return out
}

// offers are, for each kind of request, a node's partitions that would do, in order;
// the compute slices of the smallest; and the sum of weights.
func (w Week) offers(o Order) (offers [][]offer, slices []int, total float64) {
	m := Machine(w.Model, w.GPUs)
	for _, k := range w.Kinds {
		var these []offer
		fewest := w.Model.MIG.Slices
		for _, d := range o.Of(m) {
			if k.takes(d.Partition.Profile) {
				these = append(these, offer{d.GPU.Index, d.Partition})
				fewest = min(fewest, d.Partition.Profile.ComputeSlices)
			}
		}
		offers, slices, total = append(offers, these), append(slices, fewest), total+k.Weight
	}
	return offers, slices, total
}

// draw a kind of request.
func (w Week) draw(random *rand.Rand, total float64) int {
	x := random.Float64() * total
	for i, k := range w.Kinds {
		if x -= k.Weight; x < 0 {
			return i
		}
	}
	return len(w.Kinds) - 1
}

// cluster is what is out of all GPUs, node by node.
type cluster struct {
	mig  *model.MIG // of each GPU
	gpus []GPU
	out  departures
}

func (c *cluster) place(offers []offer, perNode int, nodes []int, inOrder bool, ends float64) bool {
	for i, node := range nodes {
		if inOrder {
			node = i
		}
		for _, o := range offers {
			gpu := node*perNode + o.gpu
			if c.gpus[gpu].Room(o.partition, c.mig) {
				c.gpus[gpu] = c.gpus[gpu].With(o.partition)
				heap.Push(&c.out, departure{ends, offer{gpu, o.partition}})
				return true
			}
		}
	}
	return false
}

// leave takes back what ends by now.
func (c *cluster) leave(now float64) {
	for len(c.out) > 0 && c.out[0].at <= now {
		if d, ok := heap.Pop(&c.out).(departure); ok {
			c.gpus[d.gpu] = c.gpus[d.gpu].Without(d.partition)
		}
	}
}

func (c *cluster) free() int {
	free := 0
	for _, g := range c.gpus {
		free += c.mig.Slices - g.slices
	}
	return free
}

type departure struct {
	at float64
	offer
}

// departures is a heap, the next one first.
type departures []departure

func (d departures) Len() int           { return len(d) }
func (d departures) Less(i, j int) bool { return d[i].at < d[j].at }
func (d departures) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }

// Push and Pop are for package heap.
func (d *departures) Push(x any) {
	if one, ok := x.(departure); ok {
		*d = append(*d, one)
	}
}

// Pop removes the last.
func (d *departures) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
