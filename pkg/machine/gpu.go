package machine

// GPU is one physical GPU.
type GPU struct {
	UUID    string  `json:"uuid"`
	Address Address `json:"address"`
	// Index is NVML's, for people only: it shifts when a GPU falls off the bus.
	Index int `json:"index"`
	// Minor is N of /dev/nvidiaN.
	Minor       int    `json:"minor"`
	ProductName string `json:"productName"`
	// Brand and Architecture are NVML's words: "NVIDIA", "Tesla"; "Hopper".
	Brand             string      `json:"brand"`
	Architecture      string      `json:"architecture"`
	ComputeCapability Version     `json:"computeCapability"`
	Memory            Memory      `json:"memory"`
	Multiprocessors   int         `json:"multiprocessors"`
	Engines           Engines     `json:"engines"`
	ECCEnabled        bool        `json:"eccEnabled"`
	ComputeMode       ComputeMode `json:"computeMode"`
	// LimitsCgroups: the driver can limit what the processes of a cgroup of version 2
	// allocate of the GPU together (nvml.h, nvmlDeviceSetMemoryLimits_v1). In MIG mode
	// it may say otherwise than without.
	LimitsCgroups bool `json:"limitsCgroups,omitempty"`
	MIG           MIG  `json:"mig"`
	// NVLinkDomain is "<cluster UUID>.<clique>" of the NVLink fabric, or empty.
	NVLinkDomain string   `json:"nvlinkDomain,omitempty"`
	Location     Location `json:"location"`
	Health       Health   `json:"health"`
}

// Memory is in bytes, as NVML's memory info version 2 has it. Zero means that
// the GPU does not say (integrated GPUs).
type Memory struct {
	Total uint64 `json:"total"`
	// Reserved by the driver and of no use to a workload.
	Reserved uint64 `json:"reserved"`
}

// Usable is what a workload can allocate, in bytes.
func (m Memory) Usable() uint64 {
	if m.Reserved > m.Total {
		return 0
	}
	return m.Total - m.Reserved
}

// ComputeMode says how many processes may hold a context (nvml.h,
// nvmlComputeMode_t).
type ComputeMode string

// Compute modes.
const (
	ComputeModeDefault          ComputeMode = "Default"
	ComputeModeProhibited       ComputeMode = "Prohibited"
	ComputeModeExclusiveProcess ComputeMode = "ExclusiveProcess"
)

// Location is where a device sits in the PCI tree.
type Location struct {
	// PCIeRoot is "pci0000:17", as in the standard attribute
	// resource.kubernetes.io/pcieRoot. Empty when unknown.
	PCIeRoot string `json:"pcieRoot,omitempty"`
	// Switch is the address of the upstream port of the nearest PCIe switch.
	// Empty when there is none.
	Switch string `json:"switch,omitempty"`
	// Bridges are the PCI bridges between root and device, from the root down: a root
	// port, then two ports a switch.
	Bridges []Address `json:"bridges,omitempty"`
	// NUMANode is -1 when the machine does not say.
	NUMANode int `json:"numaNode"`
}

// Health is the GPU's or NIC's own word for its state. The zero value is healthy.
type Health struct {
	// Reason is FaultResetRequired, FaultRebootNeeded or FaultXid of a GPU,
	// FaultLinkDown or FaultTaken of a NIC, FaultLost of either; empty when healthy.
	Reason FaultKind `json:"reason,omitempty"`
	// Message says what is wrong and what to do.
	Message string `json:"message,omitempty"`
}

// OK says whether work can be placed on it.
func (h Health) OK() bool { return h.Reason == "" }

// Usable says whether work that is there already, or insists, can run.
func (h Health) Usable() bool {
	switch h.Reason {
	case FaultLost, FaultResetRequired, FaultUnresponsive, FaultDriverAbsent, FaultTaken:
		return false
	default:
		return true
	}
}
