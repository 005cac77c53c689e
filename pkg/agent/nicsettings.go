package agent

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// nicSettings keeps the NICs as the administrator wants them: with virtual functions, and
// with ports that treat traffic as they should.
type nicSettings struct {
	nics hardware.NICs
	want machine.Network
	// unclaimed runs a change of a NIC while no claim has it, or any part of it.
	unclaimed func(ctx context.Context, nic *machine.NIC, change func() error) error
	// failed tells people, each time that a NIC fails in another way.
	failed func(nic *machine.NIC, err error)

	said map[machine.Address]string
}

// Settle changes what is not as it should be, and says whether anything was.
func (s *nicSettings) Settle(ctx context.Context, now *machine.Machine) (changed bool) {
	for i := range now.NICs {
		nic := &now.NICs[i]
		vfs, vfErr := s.makeVFs(ctx, nic)
		port, portErr := s.setPort(ctx, nic)
		changed = changed || vfs || port
		s.report(ctx, nic, errors.Join(vfErr, portErr))
	}
	return changed
}

func (s *nicSettings) makeVFs(ctx context.Context, nic *machine.NIC) (changed bool, err error) {
	for _, wanted := range s.want.VFs {
		if wanted.NIC != nic.Address || len(nic.VFs) > 0 || nic.Away {
			continue
		}
		err := s.unclaimed(ctx, nic, func() error { return s.nics.SetVFs(ctx, nic.Address, wanted.Count) })
		return err == nil, err
	}
	return false, nil
}

func (s *nicSettings) setPort(ctx context.Context, nic *machine.NIC) (changed bool, err error) {
	if s.want.Lossless == nil || nic.Away || !nic.Offered() || nic.DCB.Misses(s.want.Lossless) == nil {
		return false, nil
	}
	_, err = s.nics.SetDCB(ctx, nic.Address, *s.want.Lossless)
	return err == nil, err
}

// report tells of a failure once.
func (s *nicSettings) report(ctx context.Context, nic *machine.NIC, err error) {
	if err == nil || ctx.Err() != nil {
		delete(s.said, nic.Address)
		return
	}
	if s.said[nic.Address] == err.Error() {
		return
	}
	if s.said == nil {
		s.said = map[machine.Address]string{}
	}
	s.said[nic.Address] = err.Error()
	klog.FromContext(ctx).Error(err, "Cannot set up a NIC", "nic", nic.Address)
	s.failed(nic, err)
}

// nicNotSetUp reports a NIC that is not as the administrator wants it.
func (e *nodeEvents) nicNotSetUp(nic *machine.NIC, err error) {
	about := &corev1.ObjectReference{Kind: "Device", Name: nic.Address.String()}
	e.record(about, corev1.EventTypeWarning, "NICNotSetUp", "Configure", err.Error())
}
