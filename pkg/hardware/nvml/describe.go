package nvml

import (
	"context"
	"fmt"
	"slices"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Describe implements hardware.GPUs.
func (g *GPUs) Describe(ctx context.Context) (hardware.Description, error) {
	s, err := g.acquire()
	if err != nil {
		return hardware.Description{}, err
	}
	defer g.release(s)
	var d machine.Driver
	var count int
	var ret api.Return
	if _, err := g.inTime(s, theDriver, func() {
		if d, ret = s.driver(); ret == api.SUCCESS {
			count, ret = s.DeviceGetCount()
		}
	}); err != nil {
		return hardware.Description{}, err // what is still being written nobody reads
	}
	if ret != api.SUCCESS {
		if err := g.gone(s, ret); err != nil {
			return hardware.Description{}, err
		}
		return hardware.Description{}, fmt.Errorf("asking NVML for the driver and its GPUs: %s", ret.String())
	}
	described := hardware.Description{Driver: d}
	for _, r := range g.readAll(s, count) {
		if err := g.gone(s, r.ended); err != nil {
			return hardware.Description{}, err
		}
		if r.usable {
			described.GPUs = append(described.GPUs, r.gpu)
		}
		described.Faults = append(described.Faults, r.faults...)
	}
	slices.SortFunc(described.GPUs, func(a, b machine.GPU) int { return a.Address.Compare(b.Address) })
	return described, ctx.Err()
}

func (s *session) driver() (machine.Driver, api.Return) {
	version, ret := s.SystemGetDriverVersion()
	if ret != api.SUCCESS {
		return machine.Driver{}, ret
	}
	cuda, ret := s.SystemGetCudaDriverVersion_v2()
	if ret != api.SUCCESS {
		return machine.Driver{}, ret
	}
	// 12080 is CUDA 12.8 (nvml.h, NVML_CUDA_DRIVER_VERSION_MAJOR).
	return machine.Driver{Version: version, CUDA: machine.Version{Major: cuda / 1000, Minor: cuda % 1000 / 10}}, api.SUCCESS
}

// learn remembers who a GPU is, for the day it does not answer.
func (g *GPUs) learn(index int, is identity) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.known[index] = is
}

func (g *GPUs) identity(index int) (is identity, known bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	is, known = g.known[index]
	return is, known
}

func (g *GPUs) nameOf(index int) string {
	if is, ok := g.identity(index); ok {
		return is.address.String()
	}
	return fmt.Sprintf("index %d", index)
}
