package mps

import (
	"context"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// protocol says how a control daemon over these devices is spoken to, or why there can
// be none. MPS itself would tell clients only.
func (m *Manager) protocol(ctx context.Context, devices []string) (int, error) {
	d, err := m.options.Describe(ctx)
	if err != nil {
		return 0, err
	}
	for _, name := range devices {
		if err := servable(d.GPUs, name); err != nil {
			return 0, err
		}
		if strings.HasPrefix(name, "MIG-") && len(devices) > 1 {
			return 0, failure.New(failure.Unsupported, "MPS over %q: a CUDA process sees one MIG device only: give each a control daemon of its own", devices)
		}
	}
	return d.Driver.MPSProtocol(), nil
}

// servable says why MPS cannot serve a device; nil where it can.
func servable(gpus []machine.GPU, name string) error {
	for i := range gpus {
		gpu := &gpus[i]
		switch {
		case gpu.UUID != name && !hasMIGDevice(gpu, name):
		case !gpu.MPS():
			return failure.New(failure.Unsupported, "GPU %s (%s) is older than Volta and cannot serve MPS clients: use a newer one", gpu.UUID, gpu.ProductName)
		case gpu.UUID == name && gpu.MIG.Enabled:
			return failure.New(failure.Unsupported, "GPU %s is in MIG mode: use one of its MIG devices", name)
		default:
			return nil
		}
	}
	return failure.New(failure.Absent, "device %s is not on this node, or does not answer", name)
}

func hasMIGDevice(gpu *machine.GPU, uuid string) bool {
	return slices.ContainsFunc(gpu.MIG.Instances, func(in machine.GPUInstance) bool {
		return slices.ContainsFunc(in.ComputeInstances, func(ci machine.ComputeInstance) bool { return ci.UUID == uuid })
	})
}

// absent is err, or that the GPU is not there, where that is why a program failed.
func (m *Manager) absent(ctx context.Context, gpu string, err error) error {
	d, cannot := m.options.Describe(ctx)
	if cannot != nil {
		return cannot
	}
	if !slices.ContainsFunc(d.GPUs, func(g machine.GPU) bool { return g.UUID == gpu }) {
		return failure.New(failure.Absent, "GPU %s is not on this node, or does not answer", gpu)
	}
	return err
}
