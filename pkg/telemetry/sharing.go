package telemetry

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Sharing measures the calls to sharing, and counts what becomes of control daemons.
func (m *Metrics) Sharing(sharing hardware.Sharing) hardware.Sharing { return timedSharing{sharing, m} }

type timedSharing struct {
	hardware.Sharing
	metrics *Metrics
}

func (t timedSharing) StartMPS(ctx context.Context, devices []string) (d hardware.MPSDaemon, err error) {
	defer t.metrics.call("start-mps")(&err)
	return t.Sharing.StartMPS(ctx, devices)
}

func (t timedSharing) StopMPS(ctx context.Context, devices []string) (err error) {
	defer t.metrics.call("stop-mps")(&err)
	return t.Sharing.StopMPS(ctx, devices)
}

func (t timedSharing) MakeNamespace(ctx context.Context, devices []string, name string, limits hardware.MPSLimits) (pipe string, err error) {
	defer t.metrics.call("make-mps-namespace")(&err)
	return t.Sharing.MakeNamespace(ctx, devices, name, limits)
}

func (t timedSharing) RemoveNamespace(ctx context.Context, devices []string, name string) (err error) {
	defer t.metrics.call("remove-mps-namespace")(&err)
	return t.Sharing.RemoveNamespace(ctx, devices, name)
}

func (t timedSharing) WatchMPS(ctx context.Context, notify func(hardware.MPSEvent)) error {
	return t.Sharing.WatchMPS(ctx, func(e hardware.MPSEvent) {
		t.metrics.mps.WithLabelValues(string(e.Kind)).Inc()
		notify(e)
	})
}

func (t timedSharing) TimeSlice(ctx context.Context, gpu string) (s machine.TimeSlice, err error) {
	defer t.metrics.call("get-time-slice")(&err)
	return t.Sharing.TimeSlice(ctx, gpu)
}

func (t timedSharing) SetTimeSlice(ctx context.Context, gpu string, to machine.TimeSlice) (err error) {
	defer t.metrics.call("set-time-slice")(&err)
	return t.Sharing.SetTimeSlice(ctx, gpu, to)
}
