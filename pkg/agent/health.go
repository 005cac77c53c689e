package agent

import (
	"context"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// WatchHealthStatus tells the kubelet after each look how each device is. Without
// a look there is no report, and the kubelet's view turns to unknown by itself.
func (p *plugin) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	looked, stop := p.observer.Subscribe()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case reports <- healthReport(p.node, p.published(), p.offering.Held(), time.Now()):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-looked:
		}
	}
}

// published is the machine with the sizes of shares that are published.
func (p *plugin) published() *machine.Machine {
	m := *p.observer.Machine()
	if sharing, ok := p.offering.Sharing(); ok {
		m.Sharing = sharing
	}
	return &m
}

// healthReport is of what the machine offers, and of what claims hold besides: who has a
// GPU that is gone is told so.
func healthReport(pool string, m *machine.Machine, held []machine.Held, now time.Time) kubeletplugin.DeviceHealthReport {
	var report kubeletplugin.DeviceHealthReport
	reported := map[string]bool{}
	add := func(d machine.Device) {
		health := kubeletplugin.DeviceHealth{
			PoolName: pool, DeviceName: d.Name, LastUpdated: now,
			Health: kubeletplugin.HealthStatusHealthy,
		}
		if h := d.Health(); !h.OK() {
			health.Health, health.Message = kubeletplugin.HealthStatusUnhealthy, h.Message
		}
		reported[d.Name] = true
		report.Devices = append(report.Devices, health)
	}
	for _, d := range m.Devices() {
		add(d)
	}
	for _, h := range held {
		if reported[h.Name] {
			continue
		}
		if d, _ := m.Remnant(h); d.Name != "" {
			add(d)
		}
	}
	return report
}
