// Package sched decides as the scheduler of Kubernetes 1.37 does which devices a
// claim gets, with its own allocator library and its default features, over the
// slices that nodes publish. It needs no cluster, and takes well under a
// millisecond a claim.
package sched

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// features are those of which 1.37 has the gates on by default.
var features = structured.Features{
	AdminAccess:             true,
	ConsumableCapacity:      true,
	DeviceBindingAndStatus:  true,
	DeviceTaints:            true,
	FractionalCapacityRange: true,
	PartitionableDevices:    true,
	PrioritizedList:         true,
}

// expressions is how many compiled selectors are kept, as the scheduler does.
const expressions = 10

// Scheduler knows what nodes publish and which devices are allocated. It is for one
// goroutine at a time.
type Scheduler struct {
	nodes  []string // in the order in which they were published first
	slices map[string][]*resourceapi.ResourceSlice
	// allocated are the results that take something, by claim.
	allocated map[types.UID][]resourceapi.DeviceRequestAllocationResult
	taken     taken
	classes   classes
	cache     *cel.Cache
}

// New returns a scheduler without nodes.
func New() *Scheduler {
	return &Scheduler{
		slices:    map[string][]*resourceapi.ResourceSlice{},
		allocated: map[types.UID][]resourceapi.DeviceRequestAllocationResult{},
		taken:     newTaken(),
		classes:   plainClasses(),
		cache:     cel.NewCache(expressions, cel.Features{EnableConsumableCapacity: features.ConsumableCapacity}),
	}
}

// Publish sets what a node offers, in the pool of its name, as the agent does: slices
// are looked through in the order given. What is allocated stays allocated.
func (s *Scheduler) Publish(node string, pool catalog.Pool) {
	var all []*resourceapi.ResourceSlice
	published := pool.Slices()
	for i, content := range published {
		// Slices are looked through in the order of their names.
		name := fmt.Sprintf("%s-%06d", node, i)
		all = append(all, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: catalog.DriverName, NodeName: &node,
				Pool:    resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(published))},
				Devices: content.Devices, SharedCounters: content.Counters,
			},
		})
	}
	if _, known := s.slices[node]; !known {
		s.nodes = append(s.nodes, node)
	}
	s.slices[node] = all
}

// Slices are what a node has published, as ResourceSlices.
func (s *Scheduler) Slices(node string) []*resourceapi.ResourceSlice { return s.slices[node] }

// Allocate gives the claim devices of the first node that has what it asks for, and
// writes the allocation into the claim's status. It returns the node, or "" where no
// node has it; an error stops the scheduling of the Pod in a cluster, whatever other
// nodes there are.
func (s *Scheduler) Allocate(ctx context.Context, claim *resourceapi.ResourceClaim) (string, error) {
	for _, node := range s.nodes {
		if ok, err := s.AllocateOn(ctx, node, claim); ok || err != nil {
			return node, err
		}
	}
	return "", nil
}

// AllocateOn is Allocate on one node.
func (s *Scheduler) AllocateOn(ctx context.Context, node string, claim *resourceapi.ResourceClaim) (bool, error) {
	if _, ok := s.allocated[claim.UID]; ok {
		return false, fmt.Errorf("claim %s is allocated already", claim.UID)
	}
	allocator, err := structured.NewAllocator(ctx, features, s.taken.AllocatedState, s.classes, s.slices[node], s.cache)
	if err != nil {
		return false, err
	}
	results, err := allocator.Allocate(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, []*resourceapi.ResourceClaim{claim})
	if err != nil || len(results) == 0 {
		return false, err
	}
	claim.Status.Allocation = &results[0]
	took := []resourceapi.DeviceRequestAllocationResult{}
	for _, r := range results[0].Devices.Results {
		if r.AdminAccess == nil || !*r.AdminAccess {
			took = append(took, r)
			s.taken.add(r)
		}
	}
	s.allocated[claim.UID] = took
	return true, nil
}

// Release takes the claim's devices back; releasing what is not allocated does
// nothing.
func (s *Scheduler) Release(claim *resourceapi.ResourceClaim) {
	for _, r := range s.allocated[claim.UID] {
		s.taken.remove(r)
	}
	delete(s.allocated, claim.UID)
	claim.Status.Allocation = nil
}

// Allocated are the node's devices that some claim has, or has a share of, sorted.
func (s *Scheduler) Allocated(node string) []string {
	var names []string
	for id := range s.taken.devices() {
		if id.Pool.String() == node {
			names = append(names, id.Device.String())
		}
	}
	slices.Sort(names)
	return names
}

// Devices are those that a claim has been given, in the order of its requests.
func Devices(claim *resourceapi.ResourceClaim) []string {
	if claim.Status.Allocation == nil {
		return nil
	}
	var names []string
	for _, r := range claim.Status.Allocation.Devices.Results {
		names = append(names, r.Device)
	}
	return names
}
