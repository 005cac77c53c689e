package usage

import (
	"cmp"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// pool is what one node offers, and who has what of it.
type pool struct {
	slices map[string]*resourceapi.ResourceSlice
	held   map[string]*held // by device
	// version counts changes; left is computed once for each.
	version     uint64
	left        map[counter]int64
	leftVersion uint64
}

// held is a device that somebody has, or shares of it.
type held struct {
	times    int
	consumed map[resourceapi.QualifiedName]resource.Quantity
}

// counter of a counter set.
type counter struct{ set, name string }

func newPool() *pool {
	return &pool{slices: map[string]*resourceapi.ResourceSlice{}, held: map[string]*held{}, version: 1}
}

func (p *pool) changed() { p.version++ }

func (p *pool) take(a allocation) {
	h := p.held[a.device]
	if h == nil {
		h = &held{consumed: map[resourceapi.QualifiedName]resource.Quantity{}}
		p.held[a.device] = h
	}
	h.times++
	for name, amount := range a.result.ConsumedCapacity {
		sum := h.consumed[name]
		sum.Add(amount)
		h.consumed[name] = sum
	}
	p.changed()
}

func (p *pool) release(a allocation) {
	h := p.held[a.device]
	if h.times--; h.times == 0 {
		delete(p.held, a.device)
	}
	for name, amount := range a.result.ConsumedCapacity {
		sum := h.consumed[name]
		sum.Sub(amount)
		h.consumed[name] = sum
	}
	p.changed()
}

// newestFirst are all slices, and those of the newest generation, which are the first of
// them; of one generation in the order in which the scheduler looks at them.
func (p *pool) newestFirst() (all, current []*resourceapi.ResourceSlice) {
	all = slices.SortedFunc(maps.Values(p.slices), func(a, b *resourceapi.ResourceSlice) int {
		return cmp.Or(cmp.Compare(b.Spec.Pool.Generation, a.Spec.Pool.Generation), cmp.Compare(a.Name, b.Name))
	})
	older := slices.IndexFunc(all, func(s *resourceapi.ResourceSlice) bool { return s.Spec.Pool.Generation != all[0].Spec.Pool.Generation })
	if older < 0 {
		return all, all
	}
	return all, all[:older]
}

// isComplete says whether all slices of the newest generation are there. Of a pool whose
// agent is just writing them the scheduler gives nothing; its devices are those of all
// generations then, each as the newest has it.
func isComplete(current []*resourceapi.ResourceSlice) bool {
	return len(current) > 0 && int64(len(current)) == current[0].Spec.Pool.ResourceSliceCount
}

// count what a class takes of the pool. Devices that are free are taken one after
// another, as by requests that arrive and find the first that fits. Nobody gets what is
// tainted, or ruled out.
func (p *pool) count(takes func(*resourceapi.Device) (bool, error), ruledOut func(device string) bool) (Counts, error) {
	var counts Counts
	var left map[counter]int64 // a copy, once there is something to take
	all, current := p.newestFirst()
	complete := isComplete(current)
	if complete {
		all = current
	}
	counted := map[string]bool{}
	for _, s := range all {
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			if !complete {
				if counted[d.Name] {
					continue
				}
				counted[d.Name] = true
			}
			ok, err := takes(d)
			if err != nil {
				return Counts{}, err
			}
			if !ok {
				continue
			}
			counts.Devices++
			if !complete || tainted(d) || ruledOut(d.Name) {
				continue
			}
			if left == nil {
				left = maps.Clone(p.countersLeft(current))
			}
			counts.Free += p.free(d, left)
		}
	}
	if counts.Devices > 0 {
		counts.Nodes = 1
	}
	return counts, nil
}

// free is how many requests the device can still satisfy; what they take of the
// counters is taken from left.
func (p *pool) free(d *resourceapi.Device, left map[counter]int64) int {
	h, isHeld := p.held[d.Name]
	if !ptr.Deref(d.AllowMultipleAllocations, false) {
		if isHeld || !fits(d, left) {
			return 0
		}
		consume(d, left)
		return 1
	}
	n := shares(d, h)
	if n == 0 || isHeld {
		return n // its counters were taken by the first share
	}
	if !fits(d, left) {
		return 0
	}
	consume(d, left)
	return n
}

// shares is how many more shares the device has room for, each of what the device's
// policy gives to those who ask for nothing else.
func shares(d *resourceapi.Device, h *held) int {
	n, limited := int64(0), false
	for name, c := range d.Capacity {
		if c.RequestPolicy == nil || c.RequestPolicy.Default == nil || c.RequestPolicy.Default.Sign() <= 0 {
			continue
		}
		room := c.Value.DeepCopy()
		if h != nil {
			room.Sub(h.consumed[name])
		}
		times := max(0, room.Value()/c.RequestPolicy.Default.Value())
		if !limited || times < n {
			n, limited = times, true
		}
	}
	if !limited && h == nil {
		return 1 // of what has no policy a share takes all
	}
	return int(n)
}

func tainted(d *resourceapi.Device) bool {
	return slices.ContainsFunc(d.Taints, func(t resourceapi.DeviceTaint) bool { return t.Effect != resourceapi.DeviceTaintEffectNone })
}

// countersLeft is what the pool's counter sets have without what is taken by devices
// that somebody has.
func (p *pool) countersLeft(current []*resourceapi.ResourceSlice) map[counter]int64 {
	if p.leftVersion == p.version {
		return p.left
	}
	left := map[counter]int64{}
	for _, s := range current {
		for _, set := range s.Spec.SharedCounters {
			for name, c := range set.Counters {
				left[counter{set.Name, name}] = c.Value.Value()
			}
		}
	}
	if len(p.held) > 0 {
		for _, s := range current {
			for i := range s.Spec.Devices {
				if _, ok := p.held[s.Spec.Devices[i].Name]; ok {
					consume(&s.Spec.Devices[i], left)
				}
			}
		}
	}
	p.left, p.leftVersion = left, p.version
	return left
}

func fits(d *resourceapi.Device, left map[counter]int64) bool {
	for _, c := range d.ConsumesCounters {
		for name, amount := range c.Counters {
			if left[counter{c.CounterSet, name}] < amount.Value.Value() {
				return false
			}
		}
	}
	return true
}

func consume(d *resourceapi.Device, left map[counter]int64) {
	for _, c := range d.ConsumesCounters {
		for name, amount := range c.Counters {
			left[counter{c.CounterSet, name}] -= amount.Value.Value()
		}
	}
}
