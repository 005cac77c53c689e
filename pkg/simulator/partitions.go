package simulator

import (
	"errors"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// NVML calls that change partitions, as Slow and Fail name them.
const (
	CallSetMIGMode             = "nvmlDeviceSetMigMode"
	CallMakeGPUInstance        = "nvmlDeviceCreateGpuInstance"
	CallMakeComputeInstance    = "nvmlGpuInstanceCreateComputeInstance"
	CallDestroyComputeInstance = "nvmlComputeInstanceDestroy"
	CallDestroyGPUInstance     = "nvmlGpuInstanceDestroy"
)

// errUnchanged ends a change that has nothing to do.
var errUnchanged = errors.New("unchanged")

// change is one NVML call that changes partitions of a GPU, which is an event.
func (m *Machine) change(gpu, call string, change func(*State, GPU) error) error {
	err := m.call(gpu, call, func(s *State, g GPU) error {
		if g.Model.MIG == nil {
			return withoutMIG(g)
		}
		if err := change(s, g); err != nil {
			return err
		}
		s.raiseMIG(g)
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

func withoutMIG(g GPU) error {
	return failure.New(failure.Unsupported, "GPU %s: model %s has no MIG", g.Spec.UUID, g.Model.Name)
}

// SetMIGMode switches the mode as NVML does: at once where the model can, otherwise
// with the next reset, so that only MIGPending changes. With MIG on the compute mode
// is Default. failure.Conflict where instances exist, failure.Busy while somebody
// holds the GPU.
func (m *Machine) SetMIGMode(gpu string, enabled bool) error {
	return m.change(gpu, CallSetMIGMode, func(s *State, g GPU) error {
		switch {
		case g.MIGEnabled == enabled && g.MIGPending == enabled:
			return errUnchanged
		case len(g.Instances) > 0:
			return failure.New(failure.Conflict, "GPU %s has %d GPU instances: destroy them before MIG mode is switched", g.Spec.UUID, len(g.Instances))
		case m.held(s, g.holdFile(), g.holdFile()+"-*"):
			return failure.New(failure.Busy, "GPU %s is in use: stop what uses it before MIG mode is switched", g.Spec.UUID)
		}
		g.MIGPending = enabled
		if g.Model.MIG.OnDemand {
			g.setMIG(enabled)
		}
		return nil
	})
}

// setMIG brings a mode into force.
func (g GPU) setMIG(enabled bool) {
	g.MIGEnabled, g.MIGPending = enabled, enabled
	g.Instances = nil
	if enabled {
		g.ComputeMode = machine.ComputeModeDefault
	}
}

// forgetPartitions is what losing power or driver does: the mode of models that
// switch at once is the one after boot, others keep theirs.
func (g GPU) forgetPartitions() {
	g.Instances = nil
	if g.Model.MIG != nil && g.Model.MIG.OnDemand {
		g.setMIG(g.Spec.MIG)
	}
}

// MakeGPUInstance makes an instance of that profile; where at is nil the simulator
// picks a placement, as NVML does. Errors are hardware.MIG's.
func (m *Machine) MakeGPUInstance(gpu string, profileID int, at *machine.Placement) (machine.GPUInstance, error) {
	var made machine.GPUInstance
	err := m.change(gpu, CallMakeGPUInstance, func(_ *State, g GPU) (err error) {
		made, err = g.makeGPUInstance(profileID, at)
		return err
	})
	return made, err
}

// MakeComputeInstance makes an instance of so many of the GPU instance's slices:
// there can be several. Errors are hardware.MIG's, and failure.Invalid where the GPU
// instance never has so many.
func (m *Machine) MakeComputeInstance(gpu string, gpuInstance, computeSlices int) (machine.ComputeInstance, error) {
	var made machine.ComputeInstance
	err := m.change(gpu, CallMakeComputeInstance, func(_ *State, g GPU) error {
		in, err := g.instance(gpuInstance)
		if err != nil {
			return err
		}
		made, err = g.makeComputeInstance(in, computeSlices)
		return err
	})
	return made, err
}

func (g GPU) instance(id int) (*machine.GPUInstance, error) {
	if in, ok := g.Instance(id); ok {
		return in, nil
	}
	return nil, failure.New(failure.Absent, "GPU %s has no GPU instance %d", g.Spec.UUID, id)
}

// DestroyComputeInstance takes a compute instance away. Errors are hardware.MIG's.
func (m *Machine) DestroyComputeInstance(gpu string, gpuInstance, computeInstance int) error {
	return m.change(gpu, CallDestroyComputeInstance, func(s *State, g GPU) error {
		in, err := g.instance(gpuInstance)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(in.ComputeInstances, func(c machine.ComputeInstance) bool { return c.ID == computeInstance })
		if i < 0 {
			return failure.New(failure.Absent, "GPU %s: GPU instance %d has no compute instance %d", g.Spec.UUID, gpuInstance, computeInstance)
		}
		if m.held(s, g.holdFile(gpuInstance), g.holdFile(gpuInstance, computeInstance)) {
			return failure.New(failure.Busy, "GPU %s: compute instance %d of GPU instance %d is in use", g.Spec.UUID, computeInstance, gpuInstance)
		}
		in.ComputeInstances = slices.Delete(in.ComputeInstances, i, i+1)
		return nil
	})
}

// DestroyGPUInstance takes a GPU instance away. Errors are hardware.MIG's.
func (m *Machine) DestroyGPUInstance(gpu string, gpuInstance int) error {
	return m.change(gpu, CallDestroyGPUInstance, func(s *State, g GPU) error {
		in, err := g.instance(gpuInstance)
		switch {
		case err != nil:
			return err
		case len(in.ComputeInstances) > 0:
			return failure.New(failure.Conflict, "GPU %s: GPU instance %d has %d compute instances: destroy them first",
				g.Spec.UUID, gpuInstance, len(in.ComputeInstances))
		case m.held(s, g.holdFile(gpuInstance)):
			return failure.New(failure.Busy, "GPU %s: GPU instance %d is in use", g.Spec.UUID, gpuInstance)
		}
		g.Instances = slices.DeleteFunc(g.Instances, func(i machine.GPUInstance) bool { return i.ID == gpuInstance })
		return nil
	})
}
