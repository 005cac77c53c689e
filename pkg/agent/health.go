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
		case reports <- healthReport(p.node, p.published(), time.Now()):
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

func healthReport(pool string, m *machine.Machine, now time.Time) kubeletplugin.DeviceHealthReport {
	var report kubeletplugin.DeviceHealthReport
	for _, d := range m.Devices() {
		health := kubeletplugin.DeviceHealth{
			PoolName: pool, DeviceName: d.Name, LastUpdated: now,
			Health: kubeletplugin.HealthStatusHealthy,
		}
		if h := d.Health(); !h.OK() {
			health.Health, health.Message = kubeletplugin.HealthStatusUnhealthy, h.Message
		}
		report.Devices = append(report.Devices, health)
	}
	return report
}
