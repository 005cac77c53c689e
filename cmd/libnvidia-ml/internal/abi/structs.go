package abi

import "unsafe"

// Memory is nvmlMemory_t.
type Memory struct{ Total, Free, Used uint64 }

// MemoryV2 is nvmlMemory_v2_t.
type MemoryV2 struct {
	Version                     uint32
	Total, Reserved, Free, Used uint64
}

// PCIInfo is nvmlPciInfo_t, of versions 2 and 3.
type PCIInfo struct {
	BusIDLegacy                              [16]byte
	Domain, Bus, Device, DeviceID, Subsystem uint32
	BusID                                    [32]byte
}

// PCIInfoExt is nvmlPciInfoExt_v1_t.
type PCIInfoExt struct {
	Version, Domain, Bus, Device, DeviceID, Subsystem, BaseClass, SubClass uint32
	BusID                                                                  [32]byte
}

// ProfileInfo is nvmlGpuInstanceProfileInfo_t.
type ProfileInfo struct {
	ID, IsP2P, Slices, Instances, Multiprocessors uint32
	Copy, Decoders, Encoders, JPEG, OFA           uint32
	MemoryMiB                                     uint64
}

// ProfileInfoV2 is nvmlGpuInstanceProfileInfo_v2_t.
type ProfileInfoV2 struct {
	Version, ID, IsP2P, Slices, Instances, Multiprocessors uint32
	Copy, Decoders, Encoders, JPEG, OFA                    uint32
	MemoryMiB                                              uint64
	Name                                                   [96]byte
}

// ProfileInfoV3 is nvmlGpuInstanceProfileInfo_v3_t.
type ProfileInfoV3 struct {
	Version, ID, Slices, Instances, Multiprocessors uint32
	Copy, Decoders, Encoders, JPEG, OFA             uint32
	MemoryMiB                                       uint64
	Name                                            [96]byte
	Capabilities                                    uint32
	_                                               [4]byte
}

// Placement is nvmlGpuInstancePlacement_t.
type Placement struct{ Start, Size uint32 }

// InstanceInfo is nvmlGpuInstanceInfo_t.
type InstanceInfo struct {
	Device      unsafe.Pointer
	ID, Profile uint32
	Placement   Placement
}

// ComputeProfileInfo is nvmlComputeInstanceProfileInfo_t.
type ComputeProfileInfo struct {
	ID, Slices, Instances, Multiprocessors uint32
	Copy, Decoders, Encoders, JPEG, OFA    uint32
}

// ComputeProfileInfoV2 is nvmlComputeInstanceProfileInfo_v2_t.
type ComputeProfileInfoV2 struct {
	Version uint32
	ComputeProfileInfo
	Name [96]byte
}

// ComputeProfileInfoV3 is nvmlComputeInstanceProfileInfo_v3_t.
type ComputeProfileInfoV3 struct {
	ComputeProfileInfoV2
	Capabilities uint32
}

// ComputeInstanceInfo is nvmlComputeInstanceInfo_t.
type ComputeInstanceInfo struct {
	Device, GPUInstance unsafe.Pointer
	ID, Profile         uint32
	Placement           Placement // in compute slices
}

// Attributes is nvmlDeviceAttributes_t.
type Attributes struct {
	Multiprocessors                     uint32
	Copy, Decoders, Encoders, JPEG, OFA uint32
	GPUSlices, ComputeSlices            uint32
	MemoryMiB                           uint64
}

// FieldValue is nvmlFieldValue_t.
type FieldValue struct {
	Field, Scope       uint32
	Timestamp, Latency int64
	ValueType          uint32
	Return             Return
	Value              [8]byte
}

// FabricInfo is nvmlGpuFabricInfo_t.
type FabricInfo struct {
	Cluster [16]byte
	Status  Return
	Clique  uint32
	State   uint8
	_       [3]byte
}

// FabricInfoV2 is nvmlGpuFabricInfo_v2_t.
type FabricInfoV2 struct {
	Version    uint32
	Cluster    [16]byte
	Status     Return
	Clique     uint32
	State      uint8
	HealthMask uint32
}

// FabricInfoV3 is nvmlGpuFabricInfo_v3_t.
type FabricInfoV3 struct {
	FabricInfoV2
	HealthSummary uint8
	_             [3]byte
}

// SetMemoryLimits is nvmlSetMemoryLimits_v1_t, in bytes; Cgroup is a C string.
type SetMemoryLimits struct {
	Cgroup     *byte
	Soft, Hard uint64
}

// GetMemoryLimits is nvmlGetMemoryLimits_v1_t.
type GetMemoryLimits struct {
	Cgroup           *byte
	Soft, Hard, Used uint64
}

// EventData is nvmlEventData_t.
type EventData struct {
	Device                       unsafe.Pointer
	Type, Data                   uint64
	GPUInstance, ComputeInstance uint32
}

// SetString copies s into a C string of fixed size, cutting it where it must.
func SetString(to []byte, s string) {
	n := copy(to[:len(to)-1], s)
	clear(to[n:])
}
