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
	defer t.metrics.call("describe-gpus")(&err)
	return t.GPUs.Describe(ctx)
}

func (t timedGPUs) ComputeMode(ctx context.Context, uuid string) (mode machine.ComputeMode, err error) {
	defer t.metrics.call("get-compute-mode")(&err)
	return t.GPUs.ComputeMode(ctx, uuid)
}

func (t timedGPUs) SetComputeMode(ctx context.Context, uuid string, mode machine.ComputeMode) (err error) {
	defer t.metrics.call("set-compute-mode")(&err)
	return t.GPUs.SetComputeMode(ctx, uuid, mode)
}
