package simulator

import (
	"context"
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// GPUs is the face within the process: hardware.GPUs without a library.
type GPUs struct{ machine *Machine }

var _ hardware.GPUs = (*GPUs)(nil)

// GPUs shows the machine to the driver.
func (m *Machine) GPUs() *GPUs { return &GPUs{machine: m} }

// loaded is the state of a machine whose driver is loaded.
func (g *GPUs) loaded() (*State, error) {
	state, err := g.machine.State()
	if err != nil {
		return nil, err
	}
	if err := state.loaded(); err != nil {
		return nil, err
	}
	return state, nil
}

// Describe implements hardware.GPUs.
func (g *GPUs) Describe(ctx context.Context) (hardware.Description, error) {
	state, err := g.loaded()
	if err != nil {
		return hardware.Description{}, err
	}
	d := hardware.Description{Driver: state.Spec.Driver}
	for i := range state.GPUs {
		gpu := state.GPU(i)
		d.Faults = append(d.Faults, gpu.faults()...)
		if !gpu.Has(FaultLost) && !gpu.Has(FaultResetRequired) {
			d.GPUs = append(d.GPUs, gpu.Describe())
		}
	}
	return d, g.machine.Linger(ctx, (*State).describeDelay)
}

// ComputeMode implements hardware.GPUs.
func (g *GPUs) ComputeMode(ctx context.Context, uuid string) (machine.ComputeMode, error) {
	gpu, err := g.look(ctx, uuid, "nvmlDeviceGetComputeMode")
	if err != nil {
		return "", err
	}
	return gpu.ComputeMode, nil
}

// look is a call that only looks: the GPU as it is when the call has taken its time.
func (g *GPUs) look(ctx context.Context, uuid, call string) (GPU, error) {
	gpu, err := g.usable(uuid)
	if err != nil {
		return GPU{}, err
	}
	if err := g.machine.Linger(ctx, gpu.DelayOf(call)); err != nil {
		return GPU{}, err
	}
	if err := g.machine.Call(uuid, call); err != nil {
		return GPU{}, err
	}
	return g.usable(uuid)
}

// SetComputeMode implements hardware.GPUs.
func (g *GPUs) SetComputeMode(ctx context.Context, uuid string, mode machine.ComputeMode) error {
	switch mode {
	case machine.ComputeModeDefault, machine.ComputeModeProhibited, machine.ComputeModeExclusiveProcess:
	default:
		return failure.New(failure.Invalid, "GPU %s: compute mode %q is unknown: use Default, ExclusiveProcess or Prohibited", uuid, mode)
	}
	gpu, err := g.usable(uuid)
	if err != nil {
		return err
	}
	if err := g.machine.Linger(ctx, gpu.DelayOf("nvmlDeviceSetComputeMode")); err != nil {
		return err
	}
	return g.machine.SetComputeMode(uuid, mode)
}

// SetComputeMode sets it, for both faces. With MIG on the mode can only be
// Default, as with the real driver.
func (m *Machine) SetComputeMode(uuid string, mode machine.ComputeMode) error {
	return m.call(uuid, "nvmlDeviceSetComputeMode", func(_ *State, g GPU) error {
		if g.MIGEnabled && mode != machine.ComputeModeDefault {
			return failure.New(failure.Unsupported, "GPU %s is in MIG mode: its compute mode stays Default", uuid)
		}
		g.ComputeMode = mode
		return nil
	})
}

// usable returns a GPU that answers.
func (g *GPUs) usable(uuid string) (GPU, error) {
	state, err := g.machine.State()
	if err != nil {
		return GPU{}, err
	}
	return state.usable(uuid)
}

// Watch implements hardware.GPUs.
func (g *GPUs) Watch(ctx context.Context, notify func(hardware.Event)) error {
	state, err := g.loaded()
	if err != nil {
		return err
	}
	silent := map[string]bool{}
	for i := range state.GPUs {
		if state.GPUs[i].Has(FaultNoEvents) {
			silent[state.Spec.GPUs[i].UUID] = true
		}
	}
	if len(silent) == len(state.GPUs) {
		return failure.New(failure.Unsupported, "no GPU of machine %s reports events", state.Spec.Name)
	}
	events, err := g.machine.Events()
	if err != nil {
		return fmt.Errorf("watching GPU events: %w", err)
	}
	defer events.Close()
	for {
		if _, err := g.loaded(); err != nil { // changed, perhaps before there were events
			return err
		}
		event, err := events.Next(ctx, func(e Event) bool { return e.MPS == nil && !silent[e.UUID] })
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("watching GPU events: %w", err)
		case event != nil:
			notify(hardware.Event{UUID: event.UUID, Xid: event.Xid})
		}
	}
}

// Close implements hardware.GPUs.
func (g *GPUs) Close() error { return nil }
