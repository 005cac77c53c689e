package simulator

import (
	"crypto/sha256"
	"fmt"
	"reflect"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Spec is what a machine is made of. It does not change while the machine
// exists. pkg/simulator/description reads it from YAML.
type Spec struct {
	Name string `json:"name"`
	// Driver is the zero value for a machine without GPUs.
	Driver machine.Driver `json:"driver"`
	// GPUs are in the order of their addresses, which is NVML's order.
	GPUs []GPUSpec `json:"gpus"`
	// NICs are in the order of their addresses.
	NICs []NICSpec `json:"nics,omitempty"`
}

// GPUSpec is one GPU as it is built in.
type GPUSpec struct {
	UUID    string          `json:"uuid"`
	Address machine.Address `json:"address"`
	// Model is a name in pkg/simulator/model.
	Model string `json:"model"`
	Minor int    `json:"minor"`
	// Above is the way to the GPU through the PCI tree: the root ("pci0000:15"),
	// then the addresses of the ports, outermost first.
	Above    []string `json:"above"`
	NUMANode int      `json:"numaNode"`
	ECC      bool     `json:"ecc"`
	// MIG says that the mode is on when the machine boots.
	MIG bool `json:"mig,omitempty"`
	// Partitions are there after each boot, as a boot script of the administrator's
	// makes them. CheckPartitions says whether they can be.
	Partitions []PartitionSpec `json:"partitions,omitempty"`
	Fabric     *Fabric         `json:"fabric,omitempty"`
	// Faults that the GPU has from each boot on.
	Faults []Fault `json:"faults,omitempty"`
}

// PartitionSpec is a GPU instance with one compute instance that spans it.
type PartitionSpec struct {
	Profile string `json:"profile"`
	Start   int    `json:"start"` // of its placement, in memory units
}

// Fabric is a place in a multi-node NVLink fabric.
type Fabric struct {
	ClusterUUID string `json:"clusterUUID"`
	Clique      uint32 `json:"clique"`
}

// Fault is something that a GPU can have.
type Fault string

// The faults.
const (
	FaultLost               Fault = "lost"                 // fell off the bus
	FaultResetRequired      Fault = "reset-required"       // most queries want a reset first
	FaultMemoryNotSupported Fault = "memory-not-supported" // memory queries answer "Not Supported"
	FaultNoEvents           Fault = "no-events"            // events of the GPU cannot be had
	FaultProfilesNeedMIG    Fault = "profiles-need-mig"    // profiles are told in MIG mode alone
	FaultNoMemoryLimits     Fault = "no-memory-limits"     // the driver limits no cgroup's memory of it, whatever the branch
)

// Faults lists all of them.
func Faults() []Fault {
	return []Fault{FaultLost, FaultResetRequired, FaultMemoryNotSupported, FaultNoEvents, FaultProfilesNeedMIG, FaultNoMemoryLimits}
}

// UUID is the one that a GPU has unless its description gives one: the same
// machine name and address always give the same.
func UUID(machineName string, address machine.Address) string {
	return "GPU-" + formatUUID(4, sha256.Sum256([]byte(machineName+"/"+address.String())))
}

// formatUUID makes one of that version (RFC 9562).
func formatUUID(version byte, b [32]byte) string {
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func (s *Spec) equal(other *Spec) bool { return reflect.DeepEqual(s, other) }
