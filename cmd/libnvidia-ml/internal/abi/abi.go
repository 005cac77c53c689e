// Package abi is the part of NVML's binary interface that the simulated library
// speaks: codes and memory layouts, as nvml.h 13.4 defines them. A test holds
// the layouts against go-nvml's.
package abi

import "unsafe"

// Return is nvmlReturn_t.
type Return = int32

// Codes of nvmlReturn_t.
const (
	Success                 Return = 0
	Uninitialized           Return = 1
	InvalidArgument         Return = 2
	NotSupported            Return = 3
	NoPermission            Return = 4
	NotFound                Return = 6
	InsufficientSize        Return = 7
	DriverNotLoaded         Return = 9
	Timeout                 Return = 10
	GPUIsLost               Return = 15
	ResetRequired           Return = 16
	OperatingSystem         Return = 17
	InUse                   Return = 19
	InsufficientResources   Return = 23
	ArgumentVersionMismatch Return = 25
	Unknown                 Return = 999
)

// ErrorStrings are what nvmlErrorString says of each code.
var ErrorStrings = map[Return]string{
	Success:                 "Success",
	Uninitialized:           "Uninitialized",
	InvalidArgument:         "Invalid Argument",
	NotSupported:            "Not Supported",
	NoPermission:            "Insufficient Permissions",
	NotFound:                "Not Found",
	InsufficientSize:        "Insufficient Size",
	DriverNotLoaded:         "Driver Not Loaded",
	Timeout:                 "Timeout",
	GPUIsLost:               "GPU is lost",
	ResetRequired:           "GPU requires reset",
	OperatingSystem:         "The operating system has blocked the request",
	InUse:                   "In use by another client",
	InsufficientResources:   "Insufficient Resources",
	ArgumentVersionMismatch: "Argument version mismatch",
}

// Version is what the version field of a versioned structure T must hold
// (NVML_STRUCT_VERSION).
func Version[T any](number uint32) uint32 {
	var t T
	return uint32(unsafe.Sizeof(t)) | number<<24
}

// Architectures are the NVML_DEVICE_ARCH_* numbers.
var Architectures = map[string]uint32{
	"Pascal": 4, "Turing": 6, "Ampere": 7, "Ada Lovelace": 8, "Hopper": 9, "Blackwell": 10,
}

// Brands are nvmlBrandType_t.
var Brands = map[string]uint32{
	"Tesla": 2, "NVIDIA RTX": 13, "NVIDIA": 14,
}

// Event types: nvmlEventTypeXidCriticalError, nvmlEventMigConfigChange and
// nvmlEventTypeGpuRecoveryAction.
const (
	EventXid      = 0x8
	EventMIG      = 0x100
	EventRecovery = 0x8000
)

// NoInstance stands for "no MIG instance".
const NoInstance = 0xffffffff

// FabricCompleted is NVML_GPU_FABRIC_STATE_COMPLETED.
const FabricCompleted = 3

// CapsP2P and CapsGFX are NVML_GPU_INSTANCE_PROFILE_CAPS_*.
const (
	CapsP2P = 0x1
	CapsGFX = 0x2
)

// ProfileCount is NVML_GPU_INSTANCE_PROFILE_COUNT.
const ProfileCount = 0x12

// ComputeProfileSlices are the slices of compute instances by the number of their
// profile, NVML_COMPUTE_INSTANCE_PROFILE_*. 0 is one that no simulated GPU has.
var ComputeProfileSlices = [9]int{1, 2, 3, 4, 7, 8, 6, 0, 0}

// Fields of nvmlDeviceGetFieldValues.
const (
	FieldNVLinkCount    = 91
	FieldResetlessMIG   = 184
	FieldRecoveryAction = 230
)

// ValueUint is NVML_VALUE_TYPE_UNSIGNED_INT.
const ValueUint = 1
