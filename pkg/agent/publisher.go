package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
)

// The kubelet deletes its node's slices when it starts. With the controller's own
// defaults (30 s and 60 s) the node's devices would be gone for as long.
const (
	syncDelay        = 200 * time.Millisecond
	mutationCacheTTL = 2 * time.Second
)

// publisher keeps the node's ResourceSlices as the catalog has them. Until there is
// something to publish, they stay as an earlier agent has left them.
type publisher struct {
	// turn waits until no other agent publishes this node's slices, and returns
	// the function that lets the next one: two that see things differently, as of
	// two versions, would overwrite each other's without end.
	turn func(ctx context.Context) (func(), error)
	kube kubernetes.Interface
	node string
	// refused is told what the API server did not take; the controller tries
	// again by itself.
	refused func(error)

	first chan struct{} // closed when there is something to publish

	mu         sync.Mutex // guards what follows
	latest     *resourceslice.DriverResources
	controller *resourceslice.Controller // nil until the API server was reached
}

// run publishes until ctx ends. The slices stay. It waits for its turn, and for the
// API server, as long as that takes.
func (p *publisher) run(ctx context.Context) error {
	next, err := p.turn(ctx)
	if ctx.Err() != nil {
		return nil // stopped while waiting
	}
	if err != nil {
		return fmt.Errorf("publish ResourceSlices: %w", err)
	}
	defer next()
	select {
	case <-ctx.Done():
		return nil
	case <-p.first:
	}
	p.mu.Lock()
	first := p.latest
	p.mu.Unlock()
	controller, err := resourceslice.StartController(ctx, resourceslice.Options{
		DriverName:       catalog.DriverName,
		KubeClient:       p.kube,
		Owner:            &resourceslice.Owner{APIVersion: "v1", Kind: "Node", Name: p.node},
		Resources:        first,
		SyncDelay:        ptr.To(syncDelay),
		MutationCacheTTL: ptr.To(mutationCacheTTL),
		ErrorHandler: func(ctx context.Context, err error, msg string) {
			err = explainPublishing(err)
			klog.FromContext(ctx).Error(err, "Cannot publish ResourceSlices; trying again", "step", msg)
			p.refused(err)
		},
	})
	if ctx.Err() != nil {
		return nil // whatever it is, it comes from stopping
	}
	if err != nil {
		return fmt.Errorf("publish ResourceSlices: %w", err)
	}
	p.mu.Lock()
	p.controller = controller
	if p.latest != first {
		controller.Update(p.latest)
	}
	p.mu.Unlock()
	<-ctx.Done()
	controller.Stop()
	return nil
}

// Publish replaces what is published. It does not wait.
func (p *publisher) Publish(pool catalog.Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest == nil {
		close(p.first)
	}
	p.latest = p.resources(pool)
	if p.controller != nil {
		p.controller.Update(p.latest)
	}
}

func (p *publisher) resources(pool catalog.Pool) *resourceslice.DriverResources {
	var slices []resourceslice.Slice
	for _, s := range pool.Slices() {
		slices = append(slices, resourceslice.Slice{Devices: s.Devices, SharedCounters: s.Counters})
	}
	return &resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{p.node: {Slices: slices}}}
}

// explainPublishing adds the cure where the API server lacks a feature.
func explainPublishing(err error) error {
	var dropped *resourceslice.DroppedFieldsError
	if errors.As(err, &dropped) {
		return fmt.Errorf("%w: turn on feature gates %v in the API server and the scheduler; until then devices are not kept apart", err, dropped.DisabledFeatures())
	}
	return err
}
