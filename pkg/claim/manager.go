// Package claim prepares and releases claims: it journals an intent, makes the
// change, journals the outcome, and describes the result to the container
// runtime. After a crash it finds its way back from the journal alone.
package claim

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/lock"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Config is what a Manager works with.
type Config struct {
	// Pool is the name of the node's pool.
	Pool string
	// BootID of this boot; a process does not outlive it.
	BootID string
	// Machine returns the machine as it was last seen. It must not be changed.
	Machine func() *machine.Machine
	GPUs    hardware.GPUs
	Sharing hardware.Sharing
	// NICs may be nil: then nobody looks after any.
	NICs    hardware.NICs
	Journal *journal.Journal
	CDI     *cdi.Store
	Locks   lock.File
	// Live fetches a claim from the API server, past any cache; failure.Absent
	// where no claim of that name and UID exists.
	Live func(ctx context.Context, c journal.Claim) (*resourceapi.ResourceClaim, error)
	// Alone says whether no other agent serves this node.
	Alone func() bool
	// InUse says whether the kubelet still has a Pod with that claim.
	InUse func(ctx context.Context, c journal.Claim) (bool, error)
	// Damaged is told of a record that was lost or could not be read, and what
	// became of it.
	Damaged func(uid string, err error)
	// Holders names the processes that have a GPU instance open, or, without one, the
	// GPU: "dcgm-exporter (process 4711)". Nil: nobody knows.
	Holders func(gpu *machine.GPU, gpuInstance *int) ([]string, error)
	// Waiting is told of a release that must wait for somebody, once a call.
	Waiting func(c journal.Claim, err error)
	// Quiet is how long a release waits before Waiting is told: a Pod's processes and
	// its network namespace end a moment after the Pod. Zero: it is told at once.
	Quiet time.Duration
	// Remade is told of a partition that was gone under a prepared claim, destroyed by
	// hand or with a driver, and was made again: its Pods have what it was before.
	Remade func(c journal.Claim, device string)
	// BusyPatience is how long a release waits for who has the hardware open. Zero:
	// it is tried once.
	BusyPatience time.Duration
	// Patience is how long the kubelet has, from when a claim was first seen to
	// be gone, to release it itself.
	Patience time.Duration
}

// Manager prepares and releases claims. All of its methods can run side by side,
// also in two processes; only what concerns one claim or one GPU waits.
type Manager struct {
	Config
	released tombstones
	decoded  decoded
	views    views

	mu     sync.Mutex // guards what follows
	gone   map[string]time.Time
	nudged chan struct{}
}

// New returns a Manager that has touched nothing yet; Recover comes first.
func New(c Config) *Manager {
	if c.NICs == nil {
		c.NICs = noNICs{}
	}
	return &Manager{Config: c, gone: map[string]time.Time{}, nudged: make(chan struct{})}
}

// Device is one prepared device of a claim.
type Device struct {
	// Request and Name as they were allocated.
	Request, Name string
	// ShareID of a share; empty for what the claim has alone.
	ShareID string
	// UUID of the GPU, or of the MIG device; empty for a NIC alone.
	UUID string
	// NIC is what there is to tell of the NIC; nil where it has none.
	NIC *NIC
	// Enforcement of what memory the device was given as a share, or MPS is to limit its
	// processes to; empty where there is nothing to enforce.
	Enforcement machine.Enforcement
	// Hardware is the device as Prepare saw it; empty where it is there no more.
	Hardware machine.Device
	// CDIDeviceID is what the container runtime is asked for.
	CDIDeviceID string
}

// Prepare makes an allocated claim's devices ready for containers. Again after
// success it answers the same, and repairs what is missing. After an error nothing
// is left half-done, or it is on record and tried again.
func (m *Manager) Prepare(ctx context.Context, c *resourceapi.ResourceClaim) ([]Device, error) {
	unlock, err := m.lockClaim(ctx, reference(c))
	if err != nil {
		return nil, err
	}
	defer unlock()
	devices, err := m.prepare(ctx, c)
	return devices, m.named(err)
}

// prepare is Prepare for who has the claim's lock.
func (m *Manager) prepare(ctx context.Context, c *resourceapi.ResourceClaim) ([]Device, error) {
	entry, err := m.record(string(c.UID))
	switch {
	case errors.Is(err, failure.Absent):
		return m.prepareNew(ctx, c)
	case err != nil:
		return nil, err
	case m.isOf(entry, c) && !entry.Releasing:
		return m.prepareAgain(ctx, entry)
	}
	// What is on record is of an earlier boot or an earlier allocation, or is being
	// released.
	if err := m.release(ctx, entry.Clone()); err != nil {
		return nil, err
	}
	return m.prepareNew(ctx, c)
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
	m.back(ref.UID)
	entry, err := m.record(ref.UID)
	switch {
	case errors.Is(err, failure.Absent):
		return errors.Join(m.Journal.Settle(ref.UID), m.CDI.Remove(ref.UID))
	case err != nil:
		return err
	}
	return m.releasePatiently(ctx, entry.Clone())
}

// Records lists what is on record.
func (m *Manager) Records() ([]journal.Record, error) { return m.Journal.List() }

// record reads a claim's record, and has it put back where it is lost or damaged. The
// caller has the claim's lock.
func (m *Manager) record(uid string) (*journal.Entry, error) {
	entry, told, err := m.heal(uid)
	if told != nil {
		m.Damaged(uid, told)
	}
	return entry, err
}

// release takes back all that an entry, of the caller's own, stands for.
func (m *Manager) release(ctx context.Context, e *journal.Entry) error {
	unlock, err := m.Locks.Lock(ctx, e.Locks...)
	if err != nil {
		return err
	}
	defer unlock()
	return m.takeBack(ctx, e)
}

var uidPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// lockClaim serialises all that concerns one claim. The UID becomes part of file
// names, so it is checked here, where every call passes.
func (m *Manager) lockClaim(ctx context.Context, ref journal.Claim) (unlock func(), err error) {
	if !uidPattern.MatchString(ref.UID) {
		return nil, failure.New(failure.Invalid, "metadata.uid: %q is not a UID: want letters, digits and '-', at most 64", ref.UID)
	}
	return m.Locks.Lock(ctx, "claim-"+ref.UID)
}
