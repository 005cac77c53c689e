package nvml

import (
	"fmt"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// classOf is the project's class of an NVML code; nil where it has none.
func classOf(ret api.Return) error {
	switch ret {
	case api.ERROR_NOT_SUPPORTED, api.ERROR_FUNCTION_NOT_FOUND:
		return failure.Unsupported
	case api.ERROR_NOT_FOUND, api.ERROR_GPU_NOT_FOUND, api.ERROR_GPU_IS_LOST,
		api.ERROR_DRIVER_NOT_LOADED, api.ERROR_UNINITIALIZED, api.ERROR_LIBRARY_NOT_FOUND:
		return failure.Absent
	case api.ERROR_IN_USE, api.ERROR_RESET_REQUIRED, api.ERROR_NOT_READY:
		return failure.Busy
	case api.ERROR_INVALID_ARGUMENT:
		return failure.Invalid
	}
	return nil
}

// problem is the error of a call on the GPU that device names.
func problem(device, call string, ret api.Return) error {
	message := fmt.Sprintf("GPU %s: %s", device, explain(call, ret))
	if class := classOf(ret); class != nil {
		return failure.New(class, "%s", message)
	}
	return fmt.Errorf("%s", message)
}

// explain says what went wrong and what to do.
func explain(call string, ret api.Return) string {
	switch ret {
	case api.ERROR_GPU_IS_LOST:
		return "it fell off the bus: reboot the node, and have the hardware checked if it happens again"
	case api.ERROR_RESET_REQUIRED:
		return "it must be reset: stop what uses it, then run nvidia-smi --gpu-reset"
	case api.ERROR_NO_PERMISSION:
		return fmt.Sprintf("%s: not permitted: it needs root and CAP_SYS_ADMIN (the chart's gpuAccess: privileged has both)", call)
	case api.ERROR_NOT_FOUND:
		return "there is no such GPU on this node: if it was taken out, delete the claims that have it, with their Pods"
	}
	return fmt.Sprintf("%s: NVML answers %q (%d)", call, ret.String(), int(ret))
}

// faultKind is how a failed query shows in a description.
func faultKind(ret api.Return) machine.FaultKind {
	switch ret {
	case api.ERROR_GPU_IS_LOST:
		return machine.FaultLost
	case api.ERROR_RESET_REQUIRED:
		return machine.FaultResetRequired
	}
	return machine.FaultUnreadable
}
