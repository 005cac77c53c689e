// Package claim prepares and releases claims: it journals an intent, makes the
// change, journals the outcome, and describes the result to the container
// runtime. After a crash it finds its way back from the journal alone.
package claim

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/failpoint"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/lock"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// Config is what a Manager works with.
type Config struct {
	// Pool is the name of the node's pool.
	Pool string
	// Machine returns the machine as it was last seen. It must not be changed.
	Machine func() *machine.Machine
	GPUs    hardware.GPUs
	Journal *journal.Journal
	CDI     *cdi.Store
	Locks   lock.File
	// Live fetches a claim from the API server, past any cache; failure.Absent
	// where no claim of that name and UID exists.
	Live func(ctx context.Context, c journal.Claim) (*resourceapi.ResourceClaim, error)
}

// Manager prepares and releases claims. All of its methods can run side by side,
// also in two processes; only what concerns one claim or one GPU waits.
type Manager struct {
	pool     string
	machine  func() *machine.Machine
	gpus     hardware.GPUs
	journal  *journal.Journal
	cdi      *cdi.Store
	locks    lock.File
	live     func(ctx context.Context, c journal.Claim) (*resourceapi.ResourceClaim, error)
	released tombstones
}

// New returns a Manager that has touched nothing yet; Recover comes first.
func New(c Config) *Manager {
	return &Manager{
		pool: c.Pool, machine: c.Machine, gpus: c.GPUs,
		journal: c.Journal, cdi: c.CDI, locks: c.Locks, live: c.Live,
	}
}

// Device is one prepared device of a claim.
type Device struct {
	plan.Device
	// CDIDeviceID is what the container runtime is asked for.
	CDIDeviceID string
}

// Prepare makes an allocated claim's devices ready for containers. Again after
// success it answers the same, and repairs what is missing. After an error nothing
// is left half-done, or it is on record and tried again with the next call.
func (m *Manager) Prepare(ctx context.Context, c *resourceapi.ResourceClaim) ([]Device, error) {
	ref := reference(c)
	unlock, err := m.lockClaim(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer unlock()

	entry, err := m.journal.Get(ref.UID)
	switch {
	case errors.Is(err, failure.Absent):
		return m.prepareNew(ctx, c)
	case errors.Is(err, failure.Corrupt):
		return nil, fmt.Errorf("the record of this claim is damaged and waits for recovery: restart dovetail-node: %w", err)
	case err != nil:
		return nil, err
	}
	return m.prepareAgain(ctx, entry)
}

func (m *Manager) prepareNew(ctx context.Context, c *resourceapi.ResourceClaim) ([]Device, error) {
	ref := reference(c)
	if err := m.stillWanted(ctx, c); err != nil {
		return nil, err
	}
	allocation, err := allocationOf(c, m.pool)
	if err != nil {
		return nil, err
	}
	now := m.machine()
	p, err := plan.Prepare(allocation, now)
	if err != nil {
		return nil, err
	}
	unlock, err := m.locks.Lock(ctx, p.Locks...)
	if err != nil {
		return nil, err
	}
	defer unlock()

	if err := m.refuseHeld(ref, p.Holds); err != nil {
		return nil, err
	}
	if err := m.present(ctx, p.Devices); err != nil {
		return nil, err
	}
	for i := range p.Steps {
		if p.Steps[i], err = m.observe(ctx, p.Steps[i]); err != nil {
			return nil, err
		}
	}
	entry, err := newEntry(ref, now.BootID, p)
	if err != nil {
		return nil, err
	}
	if err := m.journal.Put(entry); err != nil {
		return nil, err
	}
	failpoint.Pass(failpoint.JournalWritten)
	devices, err := m.finish(ctx, entry)
	if err != nil {
		// The claim may have to wait long, or go: nothing of it stays.
		return nil, errors.Join(err, m.takeBack(context.WithoutCancel(ctx), entry))
	}
	return devices, nil
}

// prepareAgain answers for a claim that is on record. What an interrupted call, a
// reboot or a wiped directory has left undone is done.
func (m *Manager) prepareAgain(ctx context.Context, known *journal.Entry) ([]Device, error) {
	unlock, err := m.locks.Lock(ctx, locksOf(known)...)
	if err != nil {
		return nil, err
	}
	defer unlock()
	entry := known.Clone()
	devices, err := devicesOf(entry)
	if err != nil {
		return nil, err
	}
	if err := m.present(ctx, devices); err != nil {
		return nil, err
	}
	switch boot := m.machine().BootID; {
	case boot == "":
		return nil, failure.New(failure.Absent, "the hardware cannot be seen yet: the NVIDIA driver is not loaded")
	case entry.BootID != boot:
		if err := m.startOver(ctx, entry, boot); err != nil {
			return nil, err
		}
	}
	if err := m.repair(ctx, entry); err != nil {
		return nil, err
	}
	return m.finish(ctx, entry)
}

// finish does what is left of an entry and describes it to the runtime.
func (m *Manager) finish(ctx context.Context, e *journal.Entry) ([]Device, error) {
	if err := m.carryOut(ctx, e); err != nil {
		return nil, err
	}
	if err := m.describe(e); err != nil {
		return nil, err
	}
	failpoint.Pass(failpoint.CDIWritten)
	planned, err := devicesOf(e)
	if err != nil {
		return nil, err
	}
	devices := make([]Device, 0, len(planned))
	for _, d := range planned {
		devices = append(devices, Device{Device: d, CDIDeviceID: cdi.DeviceID(e.Claim.UID, cdiDevice(d))})
	}
	return devices, nil
}

// Unprepare releases a claim. One that is not on record is released already. After
// an error the claim stays on record and the next call goes on.
func (m *Manager) Unprepare(ctx context.Context, ref journal.Claim) error {
	unlock, err := m.lockClaim(ctx, ref)
	if err != nil {
		return err
	}
	defer unlock()
	m.released.add(ref.UID)

	entry, err := m.journal.Get(ref.UID)
	switch {
	case errors.Is(err, failure.Absent):
		return m.cdi.Remove(ref.UID)
	case errors.Is(err, failure.Corrupt):
		return fmt.Errorf("the record of this claim is damaged and waits for recovery: restart dovetail-node: %w", err)
	case err != nil:
		return err
	}
	unlockDevices, err := m.locks.Lock(ctx, locksOf(entry)...)
	if err != nil {
		return err
	}
	defer unlockDevices()
	return m.takeBack(ctx, entry)
}

// Prepared lists what is on record.
func (m *Manager) Prepared() ([]journal.Record, error) { return m.journal.List() }

// stillWanted refuses a call that was overtaken by the claim's release: the claim
// as the caller has it may be older than that.
func (m *Manager) stillWanted(ctx context.Context, c *resourceapi.ResourceClaim) error {
	if m.released.has(string(c.UID)) {
		live, err := m.live(ctx, reference(c))
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

// refuseHeld is the last line of defence: the scheduler excludes this, unless a
// claim was deleted by force while its Pod still runs.
func (m *Manager) refuseHeld(ref journal.Claim, holds []string) error {
	records, err := m.journal.List()
	if err != nil {
		return err
	}
	for _, r := range records {
		holder := r.Entry
		if holder == nil { // damaged since the start: what it holds stays held
			holder, _ = m.copyOf(r.UID)
		}
		if holder == nil || r.UID == ref.UID {
			continue
		}
		for _, name := range holds {
			if slices.Contains(holder.Holds, name) {
				return failure.New(failure.Conflict,
					"device %s is still held for claim %s (UID %s): it is free when that claim's Pod has stopped", name, holder.Claim, r.UID)
			}
		}
	}
	return nil
}

// present makes sure that the hardware is really there now.
func (m *Manager) present(ctx context.Context, devices []plan.Device) error {
	for _, d := range devices {
		if d.AdminAccess {
			continue
		}
		if _, err := m.gpus.ComputeMode(ctx, d.GPU); errors.Is(err, failure.Absent) {
			return fmt.Errorf("request %s: device %s: %w", d.Request, d.Name, err)
		}
	}
	return nil
}

func (m *Manager) describe(e *journal.Entry) error {
	record, err := journal.Marshal(e)
	if err != nil {
		return err
	}
	devices, err := devicesOf(e)
	if err != nil {
		return err
	}
	c := cdi.Claim{UID: e.Claim.UID, Record: record}
	for _, d := range devices {
		c.Devices = append(c.Devices, cdiDevice(d))
	}
	return m.cdi.Write(c)
}

func cdiDevice(d plan.Device) cdi.Device {
	return cdi.Device{Request: d.Request, Name: d.Name, GPU: d.GPU}
}

var uidPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// lockClaim serialises all that concerns one claim. The UID becomes part of file
// names, so it is checked here, where every call passes.
func (m *Manager) lockClaim(ctx context.Context, ref journal.Claim) (unlock func(), err error) {
	if !uidPattern.MatchString(ref.UID) {
		return nil, failure.New(failure.Invalid, "metadata.uid: %q is not a UID: want letters, digits and '-', at most 64", ref.UID)
	}
	return m.locks.Lock(ctx, "claim-"+ref.UID)
}
