package simulator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Calls of hardware.Sharing, as Slow and Fail name them: on the GPU, or on the first
// GPU of a control daemon's devices.
const (
	CallStartMPS        = "StartMPS"
	CallStopMPS         = "StopMPS"
	CallMakeNamespace   = "MakeNamespace"
	CallRemoveNamespace = "RemoveNamespace"
	CallTimeSlice       = "TimeSlice"
	CallSetTimeSlice    = "SetTimeSlice"
)

// MPSDaemon is a control daemon that is nothing but a record.
type MPSDaemon struct {
	Devices []string `json:"devices"`
	// Where clients would find it.
	hardware.MPSDaemon
	// Started counts how often it was really started: once, and after each end.
	Started    int                           `json:"started"`
	Namespaces map[string]hardware.MPSLimits `json:"namespaces,omitempty"`
}

// Sharing is the face within the process: hardware.Sharing without processes.
type Sharing struct{ machine *Machine }

var _ hardware.Sharing = (*Sharing)(nil)

// Sharing shows the machine to the driver.
func (m *Machine) Sharing() *Sharing { return &Sharing{machine: m} }

// StartMPS implements hardware.Sharing.
func (h *Sharing) StartMPS(ctx context.Context, devices []string) (hardware.MPSDaemon, error) {
	var daemon hardware.MPSDaemon
	err := h.change(ctx, CallStartMPS, devices, func(s *State) error {
		if d := s.mps(devices); d != nil {
			daemon = d.MPSDaemon
			return errUnchanged
		}
		if err := s.canServe(devices); err != nil {
			return err
		}
		dir := filepath.Join(h.machine.root, "run/dovetail/mps", fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(devices, ","))))[:12])
		daemon = hardware.MPSDaemon{Protocol: s.MPSProtocol(), Pipe: filepath.Join(dir, "pipe"), Shm: filepath.Join(dir, "shm")}
		s.MPS = append(s.MPS, MPSDaemon{Devices: devices, MPSDaemon: daemon, Started: 1})
		return nil
	})
	return daemon, err
}

// canServe says whether one control daemon can serve these devices, beside those
// that are there.
func (s *State) canServe(devices []string) error {
	for i, name := range devices {
		d, err := s.Device(name)
		switch {
		case err != nil:
			return err
		case d.UUID != name || slices.Contains(devices[:i], name):
			return failure.New(failure.Invalid, "MPS over %q: %s is there twice, or no UUID: give each UUID once", devices, name)
		case d.MPSClients(s) == 0:
			return failure.New(failure.Unsupported, "GPU %s: model %s is older than Volta and cannot serve MPS clients", d.Spec.UUID, d.Model.Name)
		case len(d.Instance) > 0 && len(devices) > 1:
			return failure.New(failure.Unsupported, "MPS over %q: a CUDA process sees one MIG device only: give each a control daemon of its own", devices)
		}
		for _, other := range s.MPS {
			if slices.Contains(other.Devices, name) {
				return failure.New(failure.Conflict, "device %s is served by the control daemon over %q", name, other.Devices)
			}
		}
	}
	return nil
}

// mps is the control daemon over just these devices.
func (s *State) mps(devices []string) *MPSDaemon {
	i := slices.IndexFunc(s.MPS, func(d MPSDaemon) bool { return slices.Equal(d.Devices, devices) })
	if i < 0 {
		return nil
	}
	return &s.MPS[i]
}

// StopMPS implements hardware.Sharing.
func (h *Sharing) StopMPS(ctx context.Context, devices []string) error {
	return h.change(ctx, CallStopMPS, devices, func(s *State) error {
		s.MPS = slices.DeleteFunc(s.MPS, func(d MPSDaemon) bool { return slices.Equal(d.Devices, devices) })
		return nil
	})
}

// MakeNamespace implements hardware.Sharing.
func (h *Sharing) MakeNamespace(ctx context.Context, devices []string, name string, limits hardware.MPSLimits) (string, error) {
	var pipe string
	err := h.change(ctx, CallMakeNamespace, devices, func(s *State) error {
		d := s.mps(devices)
		switch {
		case d == nil:
			return failure.New(failure.Absent, "namespace %s: no control daemon serves %q: start it first", name, devices)
		case d.Protocol < 3:
			return failure.New(failure.Unsupported, "namespace %s: the MPS of driver %s has none: they came with branch 615", name, s.Spec.Driver.Version)
		}
		if err := checkNamespace(name, devices, limits); err != nil {
			return err
		}
		if d.Namespaces == nil {
			d.Namespaces = map[string]hardware.MPSLimits{}
		}
		d.Namespaces[name] = limits
		pipe = filepath.Join(d.Pipe, name)
		return nil
	})
	return pipe, err
}

func checkNamespace(name string, devices []string, limits hardware.MPSLimits) error {
	if name == "" || len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || name[0] == '-' || name[len(name)-1] == '-' {
		return failure.New(failure.Invalid, "namespace %q is no DNS label: use up to 63 small letters, digits and hyphens between them", name)
	}
	if limits.ThreadPercentage < 0 || limits.ThreadPercentage > 100 {
		return failure.New(failure.Invalid, "namespace %s: thread percentage %d: give 1 to 100, or 0 for no limit", name, limits.ThreadPercentage)
	}
	for device, bytes := range limits.Memory {
		if !slices.Contains(devices, device) || bytes == 0 {
			return failure.New(failure.Invalid, "namespace %s: %d bytes of device %s: give more than 0, of one of %q", name, bytes, device, devices)
		}
	}
	return nil
}

// RemoveNamespace implements hardware.Sharing.
func (h *Sharing) RemoveNamespace(ctx context.Context, devices []string, name string) error {
	return h.change(ctx, CallRemoveNamespace, devices, func(s *State) error {
		if d := s.mps(devices); d != nil {
			delete(d.Namespaces, name)
		}
		return nil
	})
}

// change is a call about a control daemon, as slow and as bad as was asked for.
// Nothing changes where do returns errUnchanged.
func (h *Sharing) change(ctx context.Context, call string, devices []string, do func(*State) error) error {
	state, err := h.machine.State()
	if err != nil {
		return err
	}
	if len(devices) == 0 {
		return failure.New(failure.Invalid, "%s over no device: give at least one", call)
	}
	gpu := state.parent(devices[0])
	if g, err := state.Find(gpu); err == nil {
		if err := h.machine.Linger(ctx, g.DelayOf(call)); err != nil {
			return err
		}
	}
	var failed error
	err = h.machine.Update(func(s *State) error {
		if g, err := s.Find(gpu); err == nil {
			if failed = s.fail(g, call); failed != nil {
				return nil //nolint:nilerr // so that it is written
			}
		}
		return do(s)
	})
	if err == errUnchanged { //nolint:errorlint // it is do's own
		return nil
	}
	return cmp.Or(err, failed)
}

// parent is the GPU of a device, and whatever else is no MIG device itself.
func (s *State) parent(device string) string {
	if d, err := s.migDevice(device); err == nil {
		return d.Spec.UUID
	}
	return device
}

// WatchMPS implements hardware.Sharing.
func (h *Sharing) WatchMPS(ctx context.Context, notify func(hardware.MPSEvent)) error {
	events, err := h.machine.Events()
	if err != nil {
		return fmt.Errorf("watching control daemons: %w", err)
	}
	defer events.Close()
	for {
		event, err := events.Next(ctx, func(e Event) bool { return e.MPS != nil })
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("watching control daemons: %w", err)
		case event != nil:
			notify(*event.MPS)
		}
	}
}

// RaiseMPS lets something become of the control daemon over these devices.
// failure.Absent where there is none.
func (m *Machine) RaiseMPS(devices []string, kind hardware.MPSEventKind) error {
	return m.Update(func(s *State) error {
		d := s.mps(devices)
		if d == nil {
			return failure.New(failure.Absent, "no control daemon serves %q", devices)
		}
		if kind == hardware.MPSRestarted {
			d.Started++
		}
		g, err := s.Find(s.parent(devices[0]))
		if err != nil {
			return err
		}
		s.raise(g, Event{MPS: &hardware.MPSEvent{Devices: devices, Kind: kind, Message: "as was asked for"}})
		return nil
	})
}

// TimeSlice implements hardware.Sharing.
func (h *Sharing) TimeSlice(ctx context.Context, gpu string) (machine.TimeSlice, error) {
	g, err := (&GPUs{machine: h.machine}).look(ctx, gpu, CallTimeSlice)
	if err != nil {
		return "", err
	}
	return g.TimeSliceOf(), nil
}

// SetTimeSlice implements hardware.Sharing.
func (h *Sharing) SetTimeSlice(ctx context.Context, gpu string, to machine.TimeSlice) error {
	state, err := h.machine.State()
	if err != nil {
		return err
	}
	if g, err := state.Find(gpu); err == nil {
		if err := h.machine.Linger(ctx, g.DelayOf(CallSetTimeSlice)); err != nil {
			return err
		}
	}
	return h.machine.SetTimeSlice(gpu, to)
}
