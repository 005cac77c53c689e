package nvml

import (
	"context"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// ComputeMode implements hardware.GPUs.
func (g *GPUs) ComputeMode(ctx context.Context, uuid string) (machine.ComputeMode, error) {
	return query(ctx, g, uuid, func(_ *session, d api.Device) (machine.ComputeMode, error) {
		mode, ret := d.GetComputeMode()
		return computeMode(mode), check("nvmlDeviceGetComputeMode", ret)
	})
}

// SetComputeMode implements hardware.GPUs.
func (g *GPUs) SetComputeMode(ctx context.Context, uuid string, mode machine.ComputeMode) error {
	wanted, ok := computeModes[mode]
	if !ok {
		return failure.New(failure.Invalid, "GPU %s: compute mode %q is unknown: use Default, ExclusiveProcess or Prohibited", uuid, mode)
	}
	_, err := query(ctx, g, uuid, func(_ *session, d api.Device) (nothing, error) {
		if now, ret := d.GetComputeMode(); ret == api.SUCCESS && now == wanted {
			return nothing{}, nil // setting it would need root
		}
		return nothing{}, check("nvmlDeviceSetComputeMode", d.SetComputeMode(wanted))
	})
	return err
}
