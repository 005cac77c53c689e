package telemetry

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// GPUs measures the calls to gpus.
func (m *Metrics) GPUs(gpus hardware.GPUs) hardware.GPUs { return timedGPUs{gpus, m} }

type timedGPUs struct {
	hardware.GPUs
	metrics *Metrics
}

func (t timedGPUs) Describe(ctx context.Context) (d hardware.Description, err error) {
	done := timed(t.metrics.hardware, "describe-gpus")
	defer func() { done(err) }()
	return t.GPUs.Describe(ctx)
}

func (t timedGPUs) ComputeMode(ctx context.Context, uuid string) (mode machine.ComputeMode, err error) {
	done := timed(t.metrics.hardware, "get-compute-mode")
	defer func() { done(err) }()
	return t.GPUs.ComputeMode(ctx, uuid)
}

func (t timedGPUs) SetComputeMode(ctx context.Context, uuid string, mode machine.ComputeMode) (err error) {
	done := timed(t.metrics.hardware, "set-compute-mode")
	defer func() { done(err) }()
	return t.GPUs.SetComputeMode(ctx, uuid, mode)
}
