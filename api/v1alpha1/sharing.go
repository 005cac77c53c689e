package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Sharing says how processes share a GPU.
type Sharing struct {
	// Strategy is None (they take what they can get), MPS or TimeSlicing. A device
	// that is a share has its own; there it can only be said again. Default: None
	// for devices that are no shares.
	Strategy *SharingStrategy `json:"strategy,omitempty"`
	// MPS configures strategy MPS.
	MPS *MPSSharing `json:"mps,omitempty"`
	// TimeSlicing configures strategy TimeSlicing.
	TimeSlicing *TimeSlicing `json:"timeSlicing,omitempty"`
}

// SharingStrategy is a way to share a GPU.
type SharingStrategy string

// Strategies.
const (
	SharingNone        SharingStrategy = "None"
	SharingMPS         SharingStrategy = "MPS"
	SharingTimeSlicing SharingStrategy = "TimeSlicing"
)

// MPSSharing configures NVIDIA's Multi-Process Service. Of a device that is a share,
// memory and multiprocessors are requested as capacity instead.
type MPSSharing struct {
	// ActiveThreadPercentage is the most of the GPU's multiprocessors that one
	// process uses, 1 to 100.
	ActiveThreadPercentage *int32 `json:"activeThreadPercentage,omitempty"`
	// MemoryLimit is the most memory of each GPU that one process allocates, 1Mi at
	// least.
	MemoryLimit *resource.Quantity `json:"memoryLimit,omitempty"`
	// Priority of the processes: Normal or BelowNormal. Default: Normal.
	Priority *MPSPriority `json:"priority,omitempty"`
}

// MPSPriority is an order among the clients of one MPS server.
type MPSPriority string

// Priorities.
const (
	MPSPriorityNormal      MPSPriority = "Normal"
	MPSPriorityBelowNormal MPSPriority = "BelowNormal"
)

// TimeSlicing configures the GPU's own scheduler.
type TimeSlicing struct {
	// Interval is how long the GPU works for one process before it turns to the
	// next: Default, Short, Medium or Long. It is the whole GPU's, so those who
	// share one must want the same. Left out, it stays as it is.
	Interval *Interval `json:"interval,omitempty"`
}

// Interval of time slices.
type Interval string

// Intervals, as nvidia-smi has them.
const (
	IntervalDefault Interval = "Default"
	IntervalShort   Interval = "Short"
	IntervalMedium  Interval = "Medium"
	IntervalLong    Interval = "Long"
)

// Enforcement says how well a share's memory is kept to it.
type Enforcement string

// Levels of enforcement.
const (
	EnforcementStrict     Enforcement = "Strict"
	EnforcementBestEffort Enforcement = "BestEffort"
	EnforcementNone       Enforcement = "None"
)
