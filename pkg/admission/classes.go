package admission

import (
	"errors"
	"fmt"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/admission/selector"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/parameters"
)

// Classes are the cluster's DeviceClasses, read once each. It is a handler of an
// informer's events, and safe for concurrent use. Make it with NewClasses.
type Classes struct {
	mu     sync.RWMutex // guards byName
	byName map[string]*deviceClass
}

// deviceClass is what claims need to know of a DeviceClass.
type deviceClass struct {
	name      string
	selectors selector.List
	configs   parameters.List
	// broken says why selectors or configs are not known; nil where they are.
	broken error
	// extendedResource that it serves; empty: none.
	extendedResource string
	owned            bool // by a PartitionClass
	retired          bool // which that is
}

// NewClasses returns an empty set.
func NewClasses() *Classes { return &Classes{byName: map[string]*deviceClass{}} }

// get returns nil where there is no such class, or not yet.
func (c *Classes) get(name string) *deviceClass {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byName[name]
}

// Set takes a class as it is now.
func (c *Classes) Set(dc *resourceapi.DeviceClass) {
	known := newClass(dc)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byName[dc.Name] = known
}

// Delete forgets a class.
func (c *Classes) Delete(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byName, name)
}

func newClass(dc *resourceapi.DeviceClass) *deviceClass {
	known := &deviceClass{name: dc.Name, extendedResource: ptr.Deref(dc.Spec.ExtendedResourceName, ""), owned: isOwned(dc)}
	known.retired = known.owned && class.IsRetired(&dc.Spec)
	if known.selectors, known.broken = selector.CompileAll(dc.Spec.Selectors); known.broken != nil {
		known.broken = fmt.Errorf("spec.%w", known.broken)
		return known
	}
	var f Findings
	known.configs = classConfigs(&dc.Spec, field.NewPath("spec"), &f)
	if len(f.Refused) > 0 {
		known.broken = errors.New(f.Refused[0])
	}
	return known
}

// configFor are the class's parameters as an allocation has them for a request.
func (c *deviceClass) configFor(request string) parameters.List {
	var list parameters.List
	for _, e := range c.configs {
		e.Requests = []string{request}
		list = append(list, e)
	}
	return list
}

// OnAdd is called by an informer.
func (c *Classes) OnAdd(object any, _ bool) { c.OnUpdate(nil, object) }

// OnUpdate is as OnAdd.
func (c *Classes) OnUpdate(_, object any) {
	if dc, ok := object.(*resourceapi.DeviceClass); ok {
		c.Set(dc)
	}
}

// OnDelete is as OnAdd.
func (c *Classes) OnDelete(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if dc, ok := object.(*resourceapi.DeviceClass); ok {
		c.Delete(dc.Name)
	}
}
