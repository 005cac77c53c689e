package telemetry

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func (t timedGPUs) Partitions(ctx context.Context, uuid string) (p hardware.Partitions, err error) {
	done := timed(t.metrics.hardware, "get-partitions")
	defer func() { done(err) }()
	return t.GPUs.Partitions(ctx, uuid)
}

func (t timedGPUs) SetMIGMode(ctx context.Context, uuid string, enabled bool) (err error) {
	done := timed(t.metrics.hardware, "set-mig-mode")
	defer func() { done(err) }()
	return t.GPUs.SetMIGMode(ctx, uuid, enabled)
}

func (t timedGPUs) MakeGPUInstance(ctx context.Context, uuid string, profileID int, at machine.Placement) (id int, err error) {
	done := timed(t.metrics.hardware, "make-gpu-instance")
	defer func() { done(err) }()
	return t.GPUs.MakeGPUInstance(ctx, uuid, profileID, at)
}

func (t timedGPUs) MakeComputeInstance(ctx context.Context, uuid string, gpuInstance int) (c machine.ComputeInstance, err error) {
	done := timed(t.metrics.hardware, "make-compute-instance")
	defer func() { done(err) }()
	return t.GPUs.MakeComputeInstance(ctx, uuid, gpuInstance)
}

func (t timedGPUs) DestroyComputeInstance(ctx context.Context, uuid string, gpuInstance, computeInstance int) (err error) {
	done := timed(t.metrics.hardware, "destroy-compute-instance")
	defer func() { done(err) }()
	return t.GPUs.DestroyComputeInstance(ctx, uuid, gpuInstance, computeInstance)
}

func (t timedGPUs) DestroyGPUInstance(ctx context.Context, uuid string, gpuInstance int) (err error) {
	done := timed(t.metrics.hardware, "destroy-gpu-instance")
	defer func() { done(err) }()
	return t.GPUs.DestroyGPUInstance(ctx, uuid, gpuInstance)
}
