// Package usage knows what nodes offer and what claims have of it, and counts it by
// class. It is told of each change and does again only what a change touches: the pools
// of the nodes concerned.
package usage

import (
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// Counts of one class.
type Counts struct {
	// Nodes that have devices which the class takes, and how many devices there are.
	Nodes, Devices int
	// Allocated devices, and shares, that claims have through the class.
	Allocated int
	// Free is how many more requests for one device would be satisfied one after
	// another.
	Free int
}

func (c *Counts) add(other Counts) {
	c.Nodes += other.Nodes
	c.Devices += other.Devices
	c.Free += other.Free
}

// Store is safe for several users at a time.
type Store struct {
	mu     sync.Mutex
	pools  map[string]*pool
	claims map[types.UID][]allocation
	// allocated counts allocations by class.
	allocated map[string]int
	classes   map[string]*tally
	// rules are the DeviceTaintRules, by name, that taint any of this driver's devices.
	rules map[string]*resourceapi.DeviceTaintRuleSpec
}

// New returns a store that knows of nothing.
func New() *Store {
	return &Store{
		pools: map[string]*pool{}, claims: map[types.UID][]allocation{}, allocated: map[string]int{}, classes: map[string]*tally{},
		rules: map[string]*resourceapi.DeviceTaintRuleSpec{},
	}
}

// SetSlice tells of a ResourceSlice as it is now; it is kept, and must not be changed.
func (s *Store) SetSlice(slice *resourceapi.ResourceSlice) {
	if slice.Spec.Driver != catalog.DriverName {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pool(slice.Spec.Pool.Name)
	p.slices[slice.Name] = slice
	p.changed()
}

// DeleteSlice tells that a ResourceSlice has gone.
func (s *Store) DeleteSlice(slice *resourceapi.ResourceSlice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := slice.Spec.Pool.Name
	if p, ok := s.pools[name]; ok {
		delete(p.slices, slice.Name)
		p.changed()
		s.forget(name)
	}
}

// SetClaim tells of a ResourceClaim as it is now, and returns whether what it has of
// this driver's devices has changed.
func (s *Store) SetClaim(claim *resourceapi.ResourceClaim) bool {
	return s.replace(claim.UID, allocationsOf(claim))
}

// DeleteClaim tells that a ResourceClaim has gone.
func (s *Store) DeleteClaim(claim *resourceapi.ResourceClaim) bool { return s.replace(claim.UID, nil) }

func (s *Store) replace(claim types.UID, now []allocation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.claims[claim]
	if sameAllocations(before, now) {
		return false
	}
	for _, a := range before {
		if s.allocated[a.class]--; s.allocated[a.class] == 0 {
			delete(s.allocated, a.class)
		}
		p := s.pool(a.pool)
		p.release(a)
		s.forget(a.pool)
	}
	for _, a := range now {
		s.allocated[a.class]++
		s.pool(a.pool).take(a)
	}
	if s.claims[claim] = now; len(now) == 0 {
		delete(s.claims, claim)
	}
	return true
}

func (s *Store) pool(name string) *pool {
	p, ok := s.pools[name]
	if !ok {
		p = newPool()
		s.pools[name] = p
	}
	return p
}

// forget a pool of which nothing is left.
func (s *Store) forget(name string) {
	if p := s.pools[name]; len(p.slices) == 0 && len(p.held) == 0 {
		delete(s.pools, name)
		for _, t := range s.classes {
			delete(t.pools, name)
		}
	}
}

// Nodes is how many nodes have devices, or had some that claims still have.
func (s *Store) Nodes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pools)
}

// Allocated is how many devices, and shares, claims have through a class.
func (s *Store) Allocated(class string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allocated[class]
}

// allocation is one device, or one share of it, that a claim has.
type allocation struct {
	class, pool, device string
	result              *resourceapi.DeviceRequestAllocationResult
}

// allocationsOf a claim, but for those of administrators who only look.
func allocationsOf(claim *resourceapi.ResourceClaim) []allocation {
	if claim.Status.Allocation == nil {
		return nil
	}
	var found []allocation
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		if r.Driver == catalog.DriverName && !ptr.Deref(r.AdminAccess, false) {
			found = append(found, allocation{classOf(claim, r.Request), r.Pool, r.Device, r})
		}
	}
	return found
}

// classOf a request, or of request/alternative.
func classOf(claim *resourceapi.ResourceClaim, name string) string {
	name, alternative, _ := strings.Cut(name, "/")
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		switch {
		case r.Name != name:
		case r.Exactly != nil:
			return r.Exactly.DeviceClassName
		default:
			for _, sub := range r.FirstAvailable {
				if sub.Name == alternative {
					return sub.DeviceClassName
				}
			}
		}
	}
	return ""
}

// sameAllocations: what a claim has does not change but by being given up, so names
// are enough.
func sameAllocations(a, b []allocation) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].class != b[i].class || a[i].pool != b[i].pool || a[i].device != b[i].device ||
			ptr.Deref(a[i].result.ShareID, "") != ptr.Deref(b[i].result.ShareID, "") {
			return false
		}
	}
	return true
}
