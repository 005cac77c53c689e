package main

import "C"

import (
	"errors"
	"os"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

//export nvmlDeviceSetMemoryLimits_v1
func nvmlDeviceSetMemoryLimits_v1(h unsafe.Pointer, from unsafe.Pointer) int32 {
	return either(change, h, "nvmlDeviceSetMemoryLimits", func(g simulator.GPU) abi.Return {
		limits := (*abi.SetMemoryLimits)(from)
		switch {
		case limits == nil || limits.Cgroup == nil:
			return abi.InvalidArgument
		case os.Geteuid() != 0:
			return abi.NoPermission
		}
		return limitCode(g, session.machine.Load().SetMemoryLimits(g.Spec.UUID, cgroup(limits.Cgroup),
			simulator.MemoryLimits{Soft: limits.Soft, Hard: limits.Hard}))
	}, notOnMIG)
}

//export nvmlDeviceGetMemoryLimits_v1
func nvmlDeviceGetMemoryLimits_v1(h unsafe.Pointer, to unsafe.Pointer) int32 {
	return either(query, h, "nvmlDeviceGetMemoryLimits", func(g simulator.GPU) abi.Return {
		limits := (*abi.GetMemoryLimits)(to)
		if limits == nil || limits.Cgroup == nil {
			return abi.InvalidArgument
		}
		now, used, err := session.machine.Load().ReadMemoryLimits(g.Spec.UUID, cgroup(limits.Cgroup))
		if err == nil {
			limits.Soft, limits.Hard, limits.Used = now.Soft, now.Hard, used
		}
		return limitCode(g, err)
	}, notOnMIG)
}

func notOnMIG(migDevice) abi.Return { return abi.NotSupported }

func cgroup(path *byte) string { return C.GoString((*C.char)(unsafe.Pointer(path))) }

func limitCode(g simulator.GPU, err error) abi.Return {
	switch {
	case errors.Is(err, simulator.ErrNoCgroup):
		return abi.OperatingSystem
	case errors.Is(err, simulator.ErrNoLimits):
		return abi.NotFound
	}
	return codeOf(g, err)
}
