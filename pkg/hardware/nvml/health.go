package nvml

import (
	"fmt"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// notReported stands for a driver without the field for the recovery action.
const notReported = api.DeviceGpuRecoveryAction(-1)

// health takes the GPU's own word where its driver passes it on, and otherwise
// the critical Xids that Watch has seen.
func (r *reader) health() {
	action := ask(r, "nvmlDeviceGetFieldValues", notReported, func() (api.DeviceGpuRecoveryAction, api.Return) {
		value, ret := field(r.device, api.FI_DEV_GET_GPU_RECOVERY_ACTION)
		return api.DeviceGpuRecoveryAction(value), ret
	})
	if action != notReported {
		r.gpu.Health = healthOf(action)
		return
	}
	r.gpus.mutex.Lock()
	defer r.gpus.mutex.Unlock()
	if xid, ok := r.gpus.xids[r.gpu.UUID]; ok {
		r.gpu.Health = machine.Health{
			Reason: machine.FaultXid,
			Message: fmt.Sprintf("the driver reported Xid %d: stop what uses the GPU, run nvidia-smi --gpu-reset, "+
				"then restart this agent (the driver does not say when the GPU is well again)", xid),
		}
	}
}

func healthOf(action api.DeviceGpuRecoveryAction) machine.Health {
	switch action {
	case api.GPU_RECOVERY_ACTION_NONE:
		return machine.Health{}
	case api.GPU_RECOVERY_ACTION_NODE_REBOOT, api.GPU_RECOVERY_ACTION_SYSTEM_REBOOT:
		return machine.Health{
			Reason:  machine.FaultRebootNeeded,
			Message: "the GPU asks for a reboot: drain the node and reboot it",
		}
	case api.GPU_RECOVERY_ACTION_GPU_RESET:
		return machine.Health{
			Reason:  machine.FaultResetRequired,
			Message: "the GPU asks to be reset: stop what uses it, then run nvidia-smi --gpu-reset",
		}
	}
	return machine.Health{
		Reason: machine.FaultResetRequired,
		Message: fmt.Sprintf("the GPU asks for recovery action %d: stop what uses it, "+
			"then do what nvidia-smi -q shows as its GPU Recovery Action", action),
	}
}
