package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/telemetry"
)

// plugin answers the kubelet.
type plugin struct {
	node     string
	claims   *claim.Manager
	observer *observer
	status   *statusWriter
	metrics  *telemetry.Metrics
	fatal    func(error)
	stuck    func() // called when a device is held for another claim
	offering *offering
	metadata metadataFiles
	calls    gate
}

var _ kubeletplugin.DRAPlugin = &plugin{}

// PrepareResourceClaims prepares the claims of one Pod side by side.
func (p *plugin) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	if err := p.calls.enter(); err != nil {
		return nil, err
	}
	defer p.calls.leave()
	return eachClaim(claims, func(c *resourceapi.ResourceClaim) types.UID { return c.UID },
		func(c *resourceapi.ResourceClaim) kubeletplugin.PrepareResult { return p.prepare(ctx, c) }), nil
}

// UnprepareResourceClaims releases the claims of one Pod side by side.
func (p *plugin) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	if err := p.calls.enter(); err != nil {
		return nil, err
	}
	defer p.calls.leave()
	return eachClaim(claims, func(c kubeletplugin.NamespacedObject) types.UID { return c.UID },
		func(c kubeletplugin.NamespacedObject) error { return p.unprepare(ctx, c) }), nil
}

// HandleError is told of failures in the background. Those that no retry mends
// end the agent, so that a fresh one starts.
func (p *plugin) HandleError(ctx context.Context, err error, msg string) {
	klog.FromContext(ctx).Error(err, "Kubelet plugin failed", "step", msg)
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		p.fatal(fmt.Errorf("%s: %w", msg, err))
	}
}

func (p *plugin) prepare(ctx context.Context, c *resourceapi.ResourceClaim) kubeletplugin.PrepareResult {
	logger := klog.FromContext(ctx).WithValues("claim", klog.KObj(c), "claimUID", c.UID)
	before := p.observer.Machine()
	p.offering.Claimed(devicesOf(c))
	made := p.metadata.Ahead(c)
	done := p.metrics.Time(telemetry.Prepare)
	devices, err := p.claims.Prepare(ctx, c)
	done(err)
	made(err == nil)
	p.offering.Prepared(devicesOf(c), before)
	news := p.status.Report(c, devices, err)
	switch {
	case errors.Is(err, failure.Conflict):
		p.stuck()
		p.observer.Look() // it may be no claim that has the hardware
	case errors.Is(err, failure.Busy), errors.Is(err, failure.Absent):
		p.observer.Look() // others should know
	}
	if err != nil {
		if news { // the kubelet tries again every few seconds
			logger.Error(err, "Cannot prepare claim")
		}
		return kubeletplugin.PrepareResult{Err: fmt.Errorf("claim %s/%s: %w", c.Namespace, c.Name, err)}
	}
	logger.Info("Prepared claim", "devices", names(devices))
	return kubeletplugin.PrepareResult{Devices: p.toKubelet(devices)}
}

func (p *plugin) unprepare(ctx context.Context, c kubeletplugin.NamespacedObject) error {
	logger := klog.FromContext(ctx).WithValues("claim", klog.KRef(c.Namespace, c.Name), "claimUID", c.UID)
	done := p.metrics.Time(telemetry.Unprepare)
	p.status.Forget(c.UID)
	err := p.claims.Unprepare(ctx, journal.Claim{Namespace: c.Namespace, Name: c.Name, UID: string(c.UID)})
	done(err)
	if err != nil {
		logger.Error(err, "Cannot release claim")
		return fmt.Errorf("claim %s/%s: %w", c.Namespace, c.Name, err)
	}
	logger.Info("Released claim")
	p.offering.Released()
	p.observer.Released()
	return nil
}

func (p *plugin) toKubelet(devices []claim.Device) []kubeletplugin.Device {
	m, offer := p.observer.Machine(), p.offering.Offer()
	out := make([]kubeletplugin.Device, 0, len(devices))
	for _, d := range devices {
		device := kubeletplugin.Device{
			Requests:     []string{d.Request},
			PoolName:     p.node,
			DeviceName:   d.Name,
			CDIDeviceIDs: []string{d.CDIDeviceID},
			Metadata:     metadata(m, offer, d),
		}
		if d.ShareID != "" {
			device.ShareID = ptr.To(types.UID(d.ShareID))
		}
		out = append(out, device)
	}
	return out
}

func names(devices []claim.Device) []string {
	out := make([]string, 0, len(devices))
	for _, d := range devices {
		out = append(out, d.Name)
	}
	return out
}

// devicesOf names the devices of this driver that the claim has been given.
func devicesOf(c *resourceapi.ResourceClaim) []string {
	var names []string
	for _, r := range own(c) {
		names = append(names, r.Device)
	}
	return names
}

// eachClaim calls do for all claims at once and collects the answers by UID.
func eachClaim[C, R any](claims []C, uid func(C) types.UID, do func(C) R) map[types.UID]R {
	var wg sync.WaitGroup
	var mu sync.Mutex
	results := make(map[types.UID]R, len(claims))
	one := func(c C) {
		r := do(c)
		mu.Lock()
		defer mu.Unlock()
		results[uid(c)] = r
	}
	for i, c := range claims {
		if i == len(claims)-1 { // most Pods have one claim: it needs no goroutine of its own
			one(c)
			continue
		}
		wg.Go(func() { one(c) })
	}
	wg.Wait()
	return results
}
