package claim

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// noNICs is hardware.NICs of a node whose NICs nobody looks after: there are none, and
// nothing can be done about any.
type noNICs struct{}

var _ hardware.NICs = noNICs{}

var errNoNICs = failure.New(failure.Unsupported,
	"nobody looks after NICs on this node: run dovetail-node with --nics=true (the chart's nics.enabled), or claim GPUs alone")

func (noNICs) DescribeNICs(context.Context, ...machine.Address) (hardware.NICDescription, error) {
	return hardware.NICDescription{}, nil
}

func (noNICs) NICHome(context.Context, machine.Address) (machine.NICHome, error) {
	return machine.NICHome{}, errNoNICs
}

// BringHome: who looks after them again has still to bring it.
func (noNICs) BringHome(context.Context, machine.NICHome) error { return errNoNICs }

func (noNICs) SetVFs(context.Context, machine.Address, int) error { return errNoNICs }

func (noNICs) SetDCB(context.Context, machine.Address, machine.DCB) (machine.DCB, error) {
	return machine.DCB{}, errNoNICs
}

// WatchNICs: nothing ever becomes of any.
func (noNICs) WatchNICs(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}
