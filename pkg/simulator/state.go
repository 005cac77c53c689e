package simulator

import (
	"crypto/rand"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/model"
)

// State is the whole machine at one moment, as it lies on disk.
type State struct {
	Version int    `json:"version"`
	Spec    Spec   `json:"spec"`
	BootID  string `json:"bootID"`
	Driver  Driver `json:"driver"`
	// GPUs are parallel to Spec.GPUs.
	GPUs []GPUState `json:"gpus"`
	// NICs are parallel to Spec.NICs.
	NICs    []NICState `json:"nics,omitempty"`
	Network Network    `json:"network,omitzero"`
	// Events are the latest ones, oldest first; NextEvent numbers the next.
	Events    []Event `json:"events,omitempty"`
	NextEvent uint64  `json:"nextEvent"`
	// MPS has the control daemons that were started within the process (Sharing).
	MPS []MPSDaemon `json:"mps,omitempty"`
	// Runs counts how often each program of the driver was started since it was
	// installed, nvidia-smi by its command, too: "nvidia-smi compute-policy".
	Runs map[string]int `json:"runs,omitempty"`
}

// stateVersion is raised when a field changes its meaning.
const stateVersion = 1

// eventsKept bounds the file; a reader that is further behind misses events, as
// with the real driver's queue.
const eventsKept = 256

// Driver says how much of the NVIDIA driver the machine has.
type Driver string

// States of the driver.
const (
	DriverLoaded   Driver = "loaded"
	DriverUnloaded Driver = "unloaded" // installed, but the kernel module is not there
	DriverMissing  Driver = "missing"  // no kernel module and no library: a fresh node
)

// GPUState is what can change of a GPU.
type GPUState struct {
	Faults      []Fault             `json:"faults,omitempty"`
	ComputeMode machine.ComputeMode `json:"computeMode"`
	MIGEnabled  bool                `json:"migEnabled,omitempty"`
	MIGPending  bool                `json:"migPending,omitempty"`
	// Instances are the GPU instances, in the order of their placements.
	Instances []machine.GPUInstance `json:"instances,omitempty"`
	// Recovery is what the GPU itself asks for.
	Recovery Recovery `json:"recovery,omitempty"`
	Trouble
	// TimeSlice is empty for the default.
	TimeSlice machine.TimeSlice `json:"timeSlice,omitempty"`
	// MemoryLimits are those of cgroups, by the path of the cgroup.
	MemoryLimits map[string]CgroupLimits `json:"memoryLimits,omitempty"`
}

// Recovery is a value of nvmlDeviceGpuRecoveryAction_t (nvml.h).
type Recovery uint32

// Recovery actions.
const (
	RecoveryNone     Recovery = 0
	RecoveryGPUReset Recovery = 1
)

// Event is something that the driver reported of a GPU.
type Event struct {
	Sequence uint64 `json:"sequence"`
	UUID     string `json:"uuid"`
	// Xid is 0 where GPUState.Recovery changed, which newer drivers report, and
	// where MIG is set.
	Xid uint64 `json:"xid"`
	// MIG says that the GPU's MIG mode or its instances changed.
	MIG bool `json:"mig,omitempty"`
	// MPS is set where it is not the GPU's own, but of the control daemon over it.
	MPS *hardware.MPSEvent `json:"mps,omitempty"`
}

func newState(spec Spec) *State {
	s := &State{Version: stateVersion, Spec: spec, Driver: DriverLoaded}
	if len(spec.GPUs) == 0 {
		s.Driver = DriverMissing
	}
	s.boot(nil)
	return s
}

// boot brings the machine up: what its description says holds again. Models whose MIG
// mode takes a reset keep it from before.
func (s *State) boot(before []GPUState) {
	var id [32]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	s.BootID = formatUUID(4, id)
	s.Events = nil
	s.MPS = nil
	s.GPUs = make([]GPUState, len(s.Spec.GPUs))
	for i, g := range s.Spec.GPUs {
		s.GPUs[i] = GPUState{
			Faults:      slices.Clone(g.Faults),
			ComputeMode: machine.ComputeModeDefault,
			MIGEnabled:  g.MIG,
			MIGPending:  g.MIG,
		}
		gpu := s.GPU(i)
		if before != nil && gpu.Model.MIG != nil && !gpu.Model.MIG.OnDemand {
			gpu.setMIG(before[i].MIGPending)
		}
		if gpu.MIGEnabled && !gpu.Has(FaultLost) {
			gpu.partition() //nolint:errcheck // a description's have been checked
		}
	}
	s.bootNICs()
}

// GPU is one GPU of a State: what it is and how it is.
type GPU struct {
	Index int
	Spec  *GPUSpec
	Model *model.Model
	// ReportsRecovery says whether the driver has a field for Recovery.
	ReportsRecovery bool
	// DriverLimits says whether the driver has memory limits of cgroups.
	DriverLimits bool
	*GPUState
}

// GPU returns the GPU with NVML's index i.
func (s *State) GPU(i int) GPU {
	spec := &s.Spec.GPUs[i]
	m, err := model.Lookup(spec.Model)
	if err != nil {
		panic("simulator: unchecked state: " + err.Error()) // State.check has seen it
	}
	return GPU{
		Index: i, Spec: spec, Model: m, ReportsRecovery: s.reportsRecovery(), DriverLimits: s.limitsCgroups(), GPUState: &s.GPUs[i],
	}
}

// reportsRecovery: the field came with the drivers of branch 570.
func (s *State) reportsRecovery() bool { return s.Branch() >= 570 }

// Has says whether the GPU has that fault now.
func (g *GPUState) Has(f Fault) bool { return slices.Contains(g.Faults, f) }

// check makes a state that was read safe to use.
func (s *State) check() error {
	if s.Version != stateVersion {
		return failure.New(failure.Corrupt, "state of version %d, this program knows %d: make the machine again with dovetail-sim create",
			s.Version, stateVersion)
	}
	if len(s.GPUs) != len(s.Spec.GPUs) {
		return failure.New(failure.Corrupt, "state of %d GPUs for a machine of %d", len(s.GPUs), len(s.Spec.GPUs))
	}
	if err := s.checkNICs(); err != nil {
		return err
	}
	for i, g := range s.Spec.GPUs {
		m, err := model.Lookup(g.Model)
		if err != nil {
			return failure.New(failure.Corrupt, "GPU %s: %w", g.Address, err)
		}
		for _, in := range s.GPUs[i].Instances {
			if _, ok := m.MIG.Profile(in.ProfileID); !ok {
				return failure.New(failure.Corrupt, "GPU %s: GPU instance %d of profile %d, which model %s lacks", g.Address, in.ID, in.ProfileID, m.Name)
			}
		}
	}
	return nil
}
