package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// isOf says whether a record is of this boot and of what the claim has now.
func (m *Manager) isOf(e *journal.Entry, c *resourceapi.ResourceClaim) bool {
	return e.BootID == m.BootID && m.holds(e, c)
}

// holds says whether a record is of the devices that the claim has now: a claim
// can be allocated anew, a GPU can be exchanged, and a partition that somebody else
// has made can be taken apart.
func (m *Manager) holds(e *journal.Entry, c *resourceapi.ResourceClaim) bool {
	results, err := resultsOf(c, m.Pool)
	if err != nil {
		return false
	}
	devices, err := devicesOf(e)
	if err != nil {
		return false
	}
	now := m.Machine()
	return slices.EqualFunc(results, devices, func(r plan.Result, d plan.Device) bool {
		device, known := now.Device(d.Name)
		return r.Request == d.Request && r.Device == d.Name && r.ShareID == d.ShareID && r.AdminAccess == d.AdminAccess &&
			(!known || same(d, device, now))
	})
}

// same says whether the hardware is what a prepared device was: a NIC can be exchanged,
// too, as its RDMA device tells, where that is not in a Pod. The device of that name may
// have another VF by now, and the claim still its own.
func same(d plan.Device, now machine.Device, m *machine.Machine) bool {
	if now.GPU != nil && (now.GPU.UUID != d.GPU || now.Static() != (d.Static != nil)) {
		return false
	}
	if d.NIC == nil || now.NIC == nil {
		return (d.NIC == nil) == (now.NIC == nil)
	}
	nic, vf := m.Function(d.NIC.Function)
	if nic == nil || nic.Away || vf != nil && vf.Away {
		return nic != nil
	}
	has := machine.Device{NIC: nic, VF: vf}
	rdma := has.RDMA()
	return rdma != nil && rdma.Name == d.NIC.RDMA
}

func (m *Manager) prepareNew(ctx context.Context, c *resourceapi.ResourceClaim) ([]Device, error) {
	ref := reference(c)
	if err := m.stillWanted(ctx, c); err != nil {
		return nil, err
	}
	results, err := resultsOf(c, m.Pool)
	if err != nil {
		return nil, err
	}
	now, err := m.seen(ctx, results)
	if err != nil {
		return nil, err
	}
	allocation, err := allocationOf(c, results, now)
	if err != nil {
		return nil, err
	}
	p, err := plan.Prepare(allocation, now)
	if err != nil {
		return nil, err
	}
	unlock, err := m.Locks.Lock(ctx, p.Locks...)
	if err != nil {
		return nil, err
	}
	defer unlock()

	ctx = onceRead(ctx)
	if err := m.refuseHeld(ctx, ref, &p); err != nil {
		return nil, err
	}
	if err := m.present(ctx, p.Devices, false); err != nil {
		return nil, err
	}
	if err := m.vacant(ctx, p.Steps); err != nil {
		return nil, err
	}
	for i := range p.Steps {
		if p.Steps[i], err = m.operation(p.Steps[i]).observe(ctx, p.Steps[i], false); err != nil {
			return nil, told(err, ref)
		}
	}
	entry, err := newEntry(ref, m.BootID, p)
	if err != nil {
		return nil, err
	}
	if err := m.Journal.Put(entry); err != nil {
		return nil, err
	}
	failpoint.Pass(failpoint.JournalWritten)
	devices, err := m.finishOrTakeBack(readAnew(ctx), entry, false)
	return seenIn(now, devices), err
}

// seenIn adds to what the caller is told the hardware, as it was seen.
func seenIn(now *machine.Machine, devices []Device) []Device {
	for i := range devices {
		devices[i].Hardware, _ = now.Device(devices[i].Name)
	}
	return devices
}

// finishOrTakeBack is finish for an entry of which nobody was told that it is ready:
// the claim may have to wait long, or go, and then nothing of it stays.
func (m *Manager) finishOrTakeBack(ctx context.Context, e *journal.Entry, again bool) ([]Device, error) {
	devices, err := m.finish(ctx, e, again)
	if err != nil {
		return nil, errors.Join(err, m.takeBack(context.WithoutCancel(ctx), e))
	}
	return devices, m.Journal.Settle(e.Claim.UID)
}

// prepareAgain answers for a claim that is on record. What an interrupted call or
// a wiped directory has left undone is done.
func (m *Manager) prepareAgain(ctx context.Context, known *journal.Entry) ([]Device, error) {
	unlock, err := m.Locks.Lock(ctx, known.Locks...)
	if err != nil {
		return nil, err
	}
	defer unlock()
	devices, err := devicesOf(known)
	if err != nil {
		return nil, err
	}
	if err := m.present(ctx, devices, true); err != nil {
		return nil, err
	}
	seen, finish := m.Machine(), m.finish
	if !known.Complete() {
		finish = m.finishOrTakeBack
	}
	told, err := finish(ctx, known.Clone(), true)
	return seenIn(seen, told), err
}

// finish does what is left of an entry and describes it to the runtime.
func (m *Manager) finish(ctx context.Context, e *journal.Entry, again bool) ([]Device, error) {
	if err := m.carryOut(ctx, e, again); err != nil {
		return nil, err
	}
	told, err := m.describe(e)
	if err != nil {
		return nil, err
	}
	failpoint.Pass(failpoint.CDIWritten)
	planned, err := devicesOf(e)
	if err != nil {
		return nil, err
	}
	devices := make([]Device, 0, len(told))
	for i, d := range told {
		devices = append(devices, tell(e, planned[i], d))
	}
	return devices, nil
}

// tell is what the caller is told of a device.
func tell(e *journal.Entry, planned plan.Device, d cdi.Device) Device {
	device := Device{
		Request: d.Request, Name: d.Name, ShareID: d.ShareID, UUID: d.GPU, CDIDeviceID: cdi.DeviceID(e.Claim.UID, d),
		NIC: tellNIC(planned.NIC, d.NIC),
	}
	if share := planned.Share; share != nil && (planned.Kind.SharesGPU() || share.Memory > 0) {
		device.Enforcement = share.Enforcement
	}
	if d.Partition != nil {
		device.UUID = d.Partition.UUID
	}
	return device
}

// stillWanted refuses a call that was overtaken by the claim's release: the claim
// as the caller has it may be older than that. While another agent runs, it may
// have been the one that was told.
func (m *Manager) stillWanted(ctx context.Context, c *resourceapi.ResourceClaim) error {
	if m.released.has(string(c.UID)) || !m.Alone() {
		live, err := m.Live(ctx, reference(c))
		if errors.Is(err, failure.Absent) {
			return failure.New(failure.Conflict, "the claim was released and no longer exists")
		}
		if err != nil {
			return fmt.Errorf("look whether the claim is still wanted: %w", err)
		}
		c = live
	}
	if c.Status.Allocation == nil || len(c.Status.ReservedFor) == 0 {
		return failure.New(failure.Conflict, "the claim is no longer allocated and reserved for a Pod")
	}
	return nil
}

// describe writes the CDI specification, and returns its devices.
func (m *Manager) describe(e *journal.Entry) ([]cdi.Device, error) {
	record, err := journal.Marshal(e)
	if err != nil {
		return nil, err
	}
	now := m.Machine()
	devices, err := described(e, now)
	if err != nil {
		return nil, err
	}
	topology, err := topologyOf(e, now)
	if err != nil {
		return nil, err
	}
	return devices, m.CDI.Write(cdi.Claim{UID: e.Claim.UID, Record: record, Devices: devices, Topology: topology})
}
