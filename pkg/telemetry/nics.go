package telemetry

import (
	"context"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// NICs measures the calls to NICs.
func (m *Metrics) NICs(nics hardware.NICs) hardware.NICs { return timedNICs{nics, m} }

type timedNICs struct {
	hardware.NICs
	metrics *Metrics
}

func (t timedNICs) DescribeNICs(ctx context.Context, only ...machine.Address) (d hardware.NICDescription, err error) {
	defer t.metrics.call("describe-nics")(&err)
	return t.NICs.DescribeNICs(ctx, only...)
}

func (t timedNICs) NICHome(ctx context.Context, function machine.Address) (home machine.NICHome, err error) {
	defer t.metrics.call("read-nic")(&err)
	return t.NICs.NICHome(ctx, function)
}

func (t timedNICs) BringHome(ctx context.Context, home machine.NICHome) (err error) {
	defer t.metrics.call("bring-nic-home")(&err)
	return t.NICs.BringHome(ctx, home)
}

func (t timedNICs) SetVFs(ctx context.Context, nic machine.Address, n int) (err error) {
	defer t.metrics.call("set-vfs")(&err)
	return t.NICs.SetVFs(ctx, nic, n)
}

func (t timedNICs) SetDCB(ctx context.Context, nic machine.Address, want machine.DCB) (now machine.DCB, err error) {
	defer t.metrics.call("set-dcb")(&err)
	return t.NICs.SetDCB(ctx, nic, want)
}
