// Package fleet knows what models of device a cluster has: what is alike is there once,
// however many nodes have it. It is fed with ResourceSlices as they come and go.
package fleet

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// individual are the attributes that tell a device from others of its model.
var individual = map[resourceapi.QualifiedName]bool{
	"uuid": true, "parentUUID": true, "index": true, "pcieSwitch": true, "nvlinkDomain": true, "placementStart": true,
	"resource.kubernetes.io/pciBusID": true, "resource.kubernetes.io/pcieRoot": true, "resource.kubernetes.io/numaNode": true,
	"ifName": true, "rdmaDevice": true, "rail": true, "gidIndex": true, "physicalFunction": true, "nicPciBusID": true,
}

// Individual says whether an attribute tells a device from others of its model, so
// that models say nothing of it. Names of this driver's are without their domain.
func Individual(attribute string) bool { return individual[resourceapi.QualifiedName(attribute)] }

// Model is what devices that are alike have in common.
type Model struct {
	cel.Device
	key string
}

// Text is the value of a string attribute of this driver; empty where it has none.
func (m *Model) Text(attribute string) string {
	if s := m.Attributes[resourceapi.QualifiedName(attribute)].StringValue; s != nil {
		return *s
	}
	return ""
}

// Kind of device.
func (m *Model) Kind() machine.Kind { return machine.Kind(m.Text("type")) }

// Product is the GPU's name as people say it ("H200"), or the NIC's where there is none.
func (m *Model) Product() string {
	return strings.TrimPrefix(cmp.Or(m.Text("productName"), m.Text("model")), "NVIDIA ")
}

// Fleet is safe for concurrent use. Make it with New.
type Fleet struct {
	mu     sync.Mutex // guards all that follows
	slices map[types.UID][]*entry
	models map[string]*entry
	sorted []*Model // nil where models have changed since
}

// entry is a model, and how many slices have it.
type entry struct {
	model  *Model
	slices int
}

// New returns an empty fleet.
func New() *Fleet { return &Fleet{slices: map[types.UID][]*entry{}, models: map[string]*entry{}} }

// Models are all that there are, in a fixed order. The caller must not change them.
func (f *Fleet) Models() []*Model {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sorted == nil {
		f.sorted = make([]*Model, 0, len(f.models))
		for _, e := range f.models {
			f.sorted = append(f.sorted, e.model)
		}
		slices.SortFunc(f.sorted, func(a, b *Model) int { return cmp.Compare(a.key, b.key) })
	}
	return f.sorted
}

// Set takes a slice as it is now.
func (f *Fleet) Set(s *resourceapi.ResourceSlice) {
	if s.Spec.Driver != catalog.DriverName {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.slices[s.UID]
	var now []*entry
	for i := range s.Spec.Devices {
		if e := f.entry(&s.Spec.Devices[i]); !slices.Contains(now, e) {
			e.slices++
			now = append(now, e)
		}
	}
	f.slices[s.UID] = now
	f.drop(before)
}

// Delete forgets a slice. It is by UID: one of the same name may have come since.
func (f *Fleet) Delete(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(f.slices[uid])
	delete(f.slices, uid)
}

// entry of a device's model, which is made where it is new. The caller has the lock.
func (f *Fleet) entry(d *resourceapi.Device) *entry {
	k := key(d)
	if e, ok := f.models[k]; ok {
		return e
	}
	e := &entry{model: &Model{key: k, Device: cel.Device{
		Driver: catalog.DriverName, AllowMultipleAllocations: d.AllowMultipleAllocations,
		Attributes: d.Attributes, Capacity: d.Capacity,
	}}}
	f.models[k], f.sorted = e, nil
	return e
}

// drop forgets models that no slice has any more. The caller has the lock.
func (f *Fleet) drop(entries []*entry) {
	for _, e := range entries {
		if e.slices--; e.slices == 0 {
			delete(f.models, e.model.key)
			f.sorted = nil
		}
	}
}

// OnAdd is called by an informer.
func (f *Fleet) OnAdd(object any, _ bool) { f.OnUpdate(nil, object) }

// OnUpdate is as OnAdd.
func (f *Fleet) OnUpdate(_, object any) {
	if s, ok := object.(*resourceapi.ResourceSlice); ok {
		f.Set(s)
	}
}

// OnDelete is as OnAdd.
func (f *Fleet) OnDelete(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if s, ok := object.(*resourceapi.ResourceSlice); ok {
		f.Delete(s.UID)
	}
}
