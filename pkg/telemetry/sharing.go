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
	done := timed(t.metrics.hardware, "start-mps")
	defer func() { done(err) }()
	return t.Sharing.StartMPS(ctx, devices)
}

func (t timedSharing) StopMPS(ctx context.Context, devices []string) (err error) {
	done := timed(t.metrics.hardware, "stop-mps")
	defer func() { done(err) }()
	return t.Sharing.StopMPS(ctx, devices)
}

func (t timedSharing) MakeNamespace(ctx context.Context, devices []string, name string, limits hardware.MPSLimits) (pipe string, err error) {
	done := timed(t.metrics.hardware, "make-mps-namespace")
	defer func() { done(err) }()
	return t.Sharing.MakeNamespace(ctx, devices, name, limits)
}

func (t timedSharing) RemoveNamespace(ctx context.Context, devices []string, name string) (err error) {
	done := timed(t.metrics.hardware, "remove-mps-namespace")
	defer func() { done(err) }()
	return t.Sharing.RemoveNamespace(ctx, devices, name)
}

func (t timedSharing) WatchMPS(ctx context.Context, notify func(hardware.MPSEvent)) error {
	return t.Sharing.WatchMPS(ctx, func(e hardware.MPSEvent) {
		t.metrics.mps.WithLabelValues(string(e.Kind)).Inc()
		notify(e)
	})
}

func (t timedSharing) TimeSlice(ctx context.Context, gpu string) (s machine.TimeSlice, err error) {
	done := timed(t.metrics.hardware, "get-time-slice")
	defer func() { done(err) }()
	return t.Sharing.TimeSlice(ctx, gpu)
}

func (t timedSharing) SetTimeSlice(ctx context.Context, gpu string, to machine.TimeSlice) (err error) {
	done := timed(t.metrics.hardware, "set-time-slice")
	defer func() { done(err) }()
	return t.Sharing.SetTimeSlice(ctx, gpu, to)
}
