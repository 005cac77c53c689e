package mps

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// None is hardware.Sharing of a node without dovetail-mps: nothing can be started or
// changed.
type None struct{}

var _ hardware.Sharing = None{}

var errNone = failure.New(failure.Unsupported,
	"nobody looks after MPS and time slices on this node: install dovetail-mps (the chart's mps.enabled) and give --mps-socket, or claim a GPU without sharing")

// StartMPS implements hardware.Sharing, as do the following.
func (None) StartMPS(context.Context, []string) (hardware.MPSDaemon, error) {
	return hardware.MPSDaemon{}, errNone
}

// StopMPS implements hardware.Sharing: who comes back could start again what was not
// stopped.
func (None) StopMPS(context.Context, []string) error { return errNone }

// MakeNamespace implements hardware.Sharing.
func (None) MakeNamespace(context.Context, []string, string, hardware.MPSLimits) (string, error) {
	return "", errNone
}

// RemoveNamespace implements hardware.Sharing.
func (None) RemoveNamespace(context.Context, []string, string) error { return nil }

// WatchMPS implements hardware.Sharing: nothing ever becomes of anything.
func (None) WatchMPS(ctx context.Context, _ func(hardware.MPSEvent)) error {
	<-ctx.Done()
	return nil
}

// TimeSlice implements hardware.Sharing: nobody changes it from what it is.
func (None) TimeSlice(context.Context, string) (machine.TimeSlice, error) {
	return machine.TimeSliceDefault, errNone
}

// SetTimeSlice implements hardware.Sharing.
func (None) SetTimeSlice(context.Context, string, machine.TimeSlice) error { return errNone }
