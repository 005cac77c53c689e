package nvml

import (
	"encoding/binary"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// field reads a number that nvmlDeviceGetFieldValues has. A driver that does not tell it,
// for whatever reason, does not support it.
func field(d api.Device, id uint32) (uint32, api.Return) {
	values := []api.FieldValue{{FieldId: id}}
	ret := d.GetFieldValues(values)
	if ret == api.SUCCESS {
		ret = api.Return(values[0].NvmlReturn)
	}
	switch ret {
	case api.ERROR_INVALID_ARGUMENT, api.ERROR_FUNCTION_NOT_FOUND, api.ERROR_NO_PERMISSION:
		ret = api.ERROR_NOT_SUPPORTED
	}
	return binary.NativeEndian.Uint32(values[0].Value[:]), ret
}
