package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// The kubelet deletes its node's slices when it starts. With the controller's own
// defaults (30 s and 60 s) the node's devices would be gone for as long.
const (
	syncDelay        = 200 * time.Millisecond
	mutationCacheTTL = 2 * time.Second
)

// publisher keeps the node's ResourceSlices as the catalog has them.
type publisher struct {
	node       string
	options    catalog.Options
	controller *resourceslice.Controller
}

// startPublisher publishes m, also when it is empty. onError is told what the API
// server refused; the controller tries again by itself.
func startPublisher(ctx context.Context, kube kubernetes.Interface, node string, options catalog.Options, m *machine.Machine, onError func(error)) (*publisher, error) {
	p := &publisher{node: node, options: options}
	var err error
	p.controller, err = resourceslice.StartController(ctx, resourceslice.Options{
		DriverName:       catalog.DriverName,
		KubeClient:       kube,
		Owner:            &resourceslice.Owner{APIVersion: "v1", Kind: "Node", Name: node},
		Resources:        p.resources(m),
		SyncDelay:        ptr.To(syncDelay),
		MutationCacheTTL: ptr.To(mutationCacheTTL),
		ErrorHandler: func(ctx context.Context, err error, msg string) {
			err = explainPublishing(err)
			klog.FromContext(ctx).Error(err, "Cannot publish ResourceSlices; trying again", "step", msg)
			onError(err)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("publish ResourceSlices: %w", err)
	}
	return p, nil
}

// Publish replaces what is published. It does not wait.
func (p *publisher) Publish(m *machine.Machine) { p.controller.Update(p.resources(m)) }

// Stop waits for the last write to end. The slices stay.
func (p *publisher) Stop() { p.controller.Stop() }

func (p *publisher) resources(m *machine.Machine) *resourceslice.DriverResources {
	var slices []resourceslice.Slice
	for _, s := range catalog.Build(*m, p.options).Slices() {
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
