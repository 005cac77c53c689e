package nvml

import (
	"context"
	"sync/atomic"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// ComputeMode implements hardware.GPUs.
func (g *GPUs) ComputeMode(ctx context.Context, uuid string) (mode machine.ComputeMode, err error) {
	var answer atomic.Value // a call that hangs may answer when nobody listens
	err = g.with(ctx, uuid, func(d api.Device) (string, api.Return) {
		m, ret := d.GetComputeMode()
		answer.Store(computeMode(m))
		return "nvmlDeviceGetComputeMode", ret
	})
	if err != nil {
		return "", err
	}
	return answer.Load().(machine.ComputeMode), nil
}

// SetComputeMode implements hardware.GPUs.
func (g *GPUs) SetComputeMode(ctx context.Context, uuid string, mode machine.ComputeMode) error {
	wanted, ok := computeModes[mode]
	if !ok {
		return failure.New(failure.Invalid, "GPU %s: compute mode %q is unknown: use Default, ExclusiveProcess or Prohibited", uuid, mode)
	}
	return g.with(ctx, uuid, func(d api.Device) (string, api.Return) {
		if now, ret := d.GetComputeMode(); ret == api.SUCCESS && now == wanted {
			return "", ret // setting it would need root
		}
		return "nvmlDeviceSetComputeMode", d.SetComputeMode(wanted)
	})
}

// with calls on the GPU with that UUID, and names it in the error. A GPU that
// does not answer is failure.Busy; its call goes on, and NVML cannot interrupt it.
func (g *GPUs) with(ctx context.Context, uuid string, do func(api.Device) (call string, ret api.Return)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return g.calls.Do("GPU "+uuid, func() error {
		s, err := g.acquire()
		if err != nil {
			return err
		}
		defer g.release(s)
		call := "nvmlDeviceGetHandleByUUID"
		device, ret := s.DeviceGetHandleByUUID(uuid)
		if ret == api.SUCCESS {
			call, ret = do(device)
		}
		if ret == api.SUCCESS {
			return nil
		}
		if err := g.gone(s, ret); err != nil {
			return err
		}
		return problem(uuid, call, ret)
	})
}
