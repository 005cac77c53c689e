package claimtest

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Held stops calls that set a compute mode until it is let go: they are under way
// for as long as a test wants.
type Held struct {
	hardware.GPUs
	// Entered gets a value from each call that has begun.
	Entered chan struct{}
	// Let is closed to let them all go.
	Let chan struct{}
}

// Hold returns gpus with calls to be held.
func Hold(gpus hardware.GPUs) *Held {
	return &Held{GPUs: gpus, Entered: make(chan struct{}, 8), Let: make(chan struct{})}
}

// SetComputeMode implements hardware.GPUs.
func (h *Held) SetComputeMode(ctx context.Context, uuid string, mode machine.ComputeMode) error {
	h.Entered <- struct{}{}
	<-h.Let
	return h.GPUs.SetComputeMode(ctx, uuid, mode)
}
