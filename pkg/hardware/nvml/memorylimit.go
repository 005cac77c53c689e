package nvml

import (
	"context"
	"fmt"
	"math"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

const (
	getLimits = "nvmlDeviceGetMemoryLimits_v1"
	setLimits = "nvmlDeviceSetMemoryLimits_v1"
)

// AddMemoryLimit lets the processes of a cgroup, by its path in sysfs, allocate so many
// bytes of a GPU; where they are limited already, so many more. It returns the sum. The
// driver forgets it when the cgroup is removed (nvml.h, nvmlSetMemoryLimits_v1_t).
// failure.Unsupported where the driver or a GPU in MIG mode has no such limits.
//
// The soft limit is the same: memory below it is guaranteed, and a process above it may
// be evicted when others need theirs (NVIDIA, "MPS v3 Memory Partitioning").
func (g *GPUs) AddMemoryLimit(ctx context.Context, uuid, cgroup string, bytes uint64) (uint64, error) {
	return query(ctx, g, uuid, func(s *session, d api.Device) (uint64, error) {
		if !s.canLimit() {
			return 0, limitProblem(uuid, cgroup, bytes, getLimits, api.ERROR_FUNCTION_NOT_FOUND)
		}
		now, ret := d.GetMemoryLimits_v1(cgroup)
		switch {
		case ret == api.ERROR_NOT_FOUND, ret == api.SUCCESS && now.HardLimit == api.DEVICE_MEMORY_LIMIT_MAX:
			now.HardLimit = 0
		case ret != api.SUCCESS:
			return 0, limitProblem(uuid, cgroup, bytes, getLimits, ret)
		}
		if bytes >= math.MaxUint64-now.HardLimit { // MaxUint64 would be no limit
			return 0, limitProblem(uuid, cgroup, bytes, setLimits, api.ERROR_INVALID_ARGUMENT)
		}
		limit := now.HardLimit + bytes
		return limit, limitProblem(uuid, cgroup, limit, setLimits, d.SetMemoryLimits_v1(cgroup, limit, limit))
	})
}

// limits asks whether the driver can limit what a cgroup's processes allocate of the GPU.
// A GPU that cannot tell is described as if it could not; one in MIG mode, which nobody
// has a share of meanwhile, by its driver's branch: it does not tell what it can without.
func (r *reader) limits() {
	if r.gpus.options.Cgroup == "" || !r.session.canLimit() {
		return
	}
	if r.gpu.MIG.Enabled {
		driver, ret := r.session.driver()
		r.gpu.LimitsCgroups = ret == api.SUCCESS && driver.LimitsCgroups()
		return
	}
	r.gpu.LimitsCgroups = ask(r, getLimits, false, func() (bool, api.Return) {
		_, ret := r.device.GetMemoryLimits_v1(r.gpus.options.Cgroup)
		return told(ret)
	})
}

// told is what the driver's answer to a question about a cgroup's limits says of the
// GPU (nvml.h, nvmlDeviceGetMemoryLimits_v1): it has limits where it tells some or has
// none of that cgroup, and has not where it does not support them or takes no such
// device. What else it may be is a fault.
func told(ret api.Return) (able bool, fault api.Return) {
	switch ret {
	case api.SUCCESS, api.ERROR_NOT_FOUND:
		return true, api.SUCCESS
	case api.ERROR_NOT_SUPPORTED, api.ERROR_FUNCTION_NOT_FOUND, api.ERROR_INVALID_ARGUMENT:
		return false, api.SUCCESS
	}
	return false, ret
}

// canLimit says whether the library has the functions.
func (s *session) canLimit() bool { return s.has[getLimits] && s.has[setLimits] }

// limitProblem is the error of a call about a cgroup's limit; nil where it succeeded.
func limitProblem(uuid, cgroup string, limit uint64, call string, ret api.Return) error {
	switch ret {
	case api.ERROR_NOT_SUPPORTED, api.ERROR_FUNCTION_NOT_FOUND:
		return failure.New(failure.Unsupported, "GPU %s: no memory limits of cgroups: they need a driver of branch 615 or later, and a GPU that has them and is not in MIG mode; a claim that is made anew gets what the GPU can do now: delete it, with its Pods", uuid)
	case api.ERROR_NO_PERMISSION:
		return fmt.Errorf("GPU %s: %s: not permitted: run the container runtime as root, or claim with enforcement: None", uuid, call)
	case api.ERROR_UNKNOWN:
		return fmt.Errorf("GPU %s: %s: look for Xid errors in the kernel's log, then reset it or reboot the node; a claim with enforcement: None needs no limit", uuid, explain(call, ret))
	case api.ERROR_OPERATING_SYSTEM:
		return failure.New(failure.Absent, "GPU %s: the driver cannot open cgroup %s: it must be one of version 2, below /sys/fs/cgroup", uuid, cgroup)
	case api.ERROR_INVALID_ARGUMENT:
		return failure.New(failure.Invalid, "GPU %s: the driver refuses a limit of %d bytes: it must not be above the GPU's memory", uuid, limit)
	}
	return check(call, ret)
}
