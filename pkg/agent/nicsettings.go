package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

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

	// now is for tests. Default: time.Now.
	now func() time.Time

	said    map[machine.Address]string
	touched map[setting]time.Time // when NICs were last changed, or were to be
}

// setting is one of a NIC's that is changed.
type setting struct {
	nic  machine.Address
	what string
}

// settingPause is the least between two changes of one setting. Each is an event, and has
// the NIC looked at again: where a card, or somebody else, wants it otherwise, that would
// go on without an end.
const settingPause = 30 * time.Second

// touch says whether a setting may be changed now, and notes that it is.
func (s *nicSettings) touch(which setting) bool {
	if s.now == nil {
		s.now = time.Now
	}
	if s.touched == nil {
		s.touched = map[setting]time.Time{}
	}
	now := s.now()
	if last, known := s.touched[which]; known && now.Sub(last) < settingPause {
		return false
	}
	s.touched[which] = now
	return true
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
	for i, wanted := range s.want.VFs {
		// More than the card can have are a fault of the node.
		if wanted.NIC != nic.Address || wanted.Count > nic.MaxVFs || len(nic.VFs) > 0 || nic.Away {
			continue
		}
		err := s.unclaimed(ctx, nic, func() error {
			if !s.touch(setting{nic.Address, "virtual functions"}) {
				return errTouched
			}
			return s.nics.SetVFs(ctx, nic.Address, wanted.Count)
		})
		if err != nil {
			err = fmt.Errorf("virtualFunctions[%d].count: %d: %w", i, wanted.Count, err)
		}
		return err == nil, err
	}
	return false, nil
}

func (s *nicSettings) setPort(ctx context.Context, nic *machine.NIC) (changed bool, err error) {
	if s.want.Lossless == nil || nic.Away || !nic.Offered() || nic.DCB.Misses(s.want.Lossless) == nil {
		return false, nil
	}
	if !s.touch(setting{nic.Address, "port"}) {
		return false, errTouched
	}
	if _, err = s.nics.SetDCB(ctx, nic.Address, *s.want.Lossless); err != nil {
		err = fmt.Errorf("lossless: %w", err)
	}
	return err == nil, err
}

// errTouched says that a setting is left as it is for a while.
var errTouched = errors.New("it was changed a moment ago")

// report tells of a failure once.
func (s *nicSettings) report(ctx context.Context, nic *machine.NIC, err error) {
	if errors.Is(err, errTouched) {
		return // what was said of it holds
	}
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
