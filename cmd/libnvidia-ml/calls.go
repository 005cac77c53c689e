package main

import (
	"cmp"
	"context"
	"errors"
	"unsafe"

	"github.com/dovetail-dra/dovetail/cmd/libnvidia-ml/internal/abi"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// caller is query or one of its kin.
type caller func(h unsafe.Pointer, call string, answer func(simulator.GPU) abi.Return) abi.Return

// identity answers a call that a GPU in need of a reset still answers.
func identity(h unsafe.Pointer, call string, answer func(simulator.GPU) abi.Return) abi.Return {
	return begin(h, call, func(g simulator.GPU) abi.Return {
		if code := injected(g, call); code != abi.Success {
			return code
		}
		return answer(g)
	})
}

// query answers any other call about a GPU.
func query(h unsafe.Pointer, call string, answer func(simulator.GPU) abi.Return) abi.Return {
	return change(h, call, func(g simulator.GPU) abi.Return {
		if code := injected(g, call); code != abi.Success {
			return code
		}
		return answer(g)
	})
}

// change answers a call that changes a GPU through a method of simulator.Machine's,
// which sees to failures that were asked for.
func change(h unsafe.Pointer, call string, answer func(simulator.GPU) abi.Return) abi.Return {
	return begin(h, call, func(g simulator.GPU) abi.Return {
		if g.Has(simulator.FaultResetRequired) {
			return abi.ResetRequired
		}
		return answer(g)
	})
}

// begin takes the time that a call takes.
func begin(h unsafe.Pointer, call string, answer func(simulator.GPU) abi.Return) abi.Return {
	g, code := find(h)
	if code != abi.Success {
		return code
	}
	if m := session.machine.Load(); m != nil && g.Delay(call) > 0 {
		// NVML has no contexts; a machine that went away meanwhile is found out below.
		_ = m.Linger(context.Background(), g.DelayOf(call))
		if g, code = find(h); code != abi.Success {
			return code
		}
	}
	if g.Has(simulator.FaultLost) {
		return abi.GPUIsLost
	}
	return answer(g)
}

// injected is how a call ends that was asked to fail.
func injected(g simulator.GPU, call string) abi.Return {
	if len(g.Failures) == 0 {
		return abi.Success
	}
	return codeOf(g, session.machine.Load().Call(g.Spec.UUID, call))
}

// codeOf is the code of what the core answered about a GPU.
func codeOf(g simulator.GPU, err error) abi.Return {
	switch {
	case err == nil:
		return abi.Success
	case errors.Is(err, simulator.ErrReadOnly), errors.Is(err, simulator.ErrNoPermission):
		return abi.NoPermission
	case errors.Is(err, failure.Unsupported):
		return abi.NotSupported
	case errors.Is(err, failure.Busy):
		return abi.InUse
	case errors.Is(err, failure.Conflict):
		return abi.InsufficientResources
	case errors.Is(err, failure.Invalid):
		return abi.InvalidArgument
	case errors.Is(err, failure.Absent): // the GPU, or the instance of a handle
		if g, code := find(handle(g.Index)); code != abi.Success || g.Has(simulator.FaultLost) {
			return cmp.Or(code, abi.GPUIsLost)
		}
		return abi.InvalidArgument
	}
	return abi.Unknown
}
