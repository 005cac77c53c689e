package claim

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// Unclaimed describes the machine as it is apart from claims: without the
// partitions that were made for them, and with MIG mode off where it is on for them
// alone. So what is published stays as it is while claims come and go, and what
// remains of partitions is somebody else's. A change of that is only believed once it
// was seen twice; again says that it was seen once, and that another look is due. NICs
// that claims have reserved are away, wherever they are just now: what was known of them
// holds, which is for machine.Merge and Recall to fill in.
func (m *Manager) Unclaimed(ctx context.Context, describe func(context.Context) (machine.Machine, error)) (now machine.Machine, again bool, err error) {
	// What exists when the hardware is looked at is on record then, but claims may
	// come just after the one reading, and go just before the other.
	before, unread := m.owned(ctx)
	now, err = describe(ctx)
	after, alsoUnread := m.owned(ctx)
	reserved := slices.Concat(before.reserved, after.reserved)
	m.views.claims(reserved, slices.Concat(before.held, after.held))
	now.NICs = away(now.NICs, reserved)
	if err != nil {
		return now, false, err
	}
	if unread != nil || alsoUnread != nil {
		klog.FromContext(ctx).Error(unread, "Cannot read the journal; partitions are published as they were", "now", alsoUnread)
		before.lost = true
	}
	now.GPUs = slices.Clone(now.GPUs)
	for i := range now.GPUs {
		gpu := &now.GPUs[i]
		inMIGMode := gpu.MIG.Enabled
		before.takeFrom(gpu)
		after.takeFrom(gpu)
		m.views.asWhole(gpu, inMIGMode)
		again = m.views.settle(gpu) || again
	}
	return now, again, nil
}

// away marks what is reserved as being away.
func away(nics []machine.NIC, reserved []machine.Reserved) []machine.NIC {
	is := func(function machine.Address) bool {
		return slices.ContainsFunc(reserved, func(r machine.Reserved) bool { return r.Function == function })
	}
	nics = slices.Clone(nics)
	for i := range nics {
		nic := &nics[i]
		nic.Away = nic.Away || is(nic.Address)
		nic.VFs = slices.Clone(nic.VFs)
		for j := range nic.VFs {
			nic.VFs[j].Away = nic.VFs[j].Away || is(nic.VFs[j].Address)
		}
	}
	return nics
}

// views is what was last believed of GPUs.
type views struct {
	mu       sync.Mutex // guards what follows, by GPU but for what claims have
	believed map[string]partitioning
	seen     map[string]partitioning // once, and not as it is believed
	whole    map[string]machine.GPU  // as it was when MIG mode was off
	reserved []machine.Reserved
	held     []machine.Held
}

func (v *views) claims(reserved []machine.Reserved, held []machine.Held) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reserved, v.held = reserved, held
}

func (v *views) ofClaims() ([]machine.Reserved, []machine.Held) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.reserved, v.held
}

// partitioning is how a GPU is divided by others than claims.
type partitioning struct {
	enabled, pending bool
	instances        []machine.GPUInstance
}

// settle makes a GPU what is believed of it, and says whether that is not what it
// shows. Claims that come and go within one look show what is nobody else's.
func (v *views) settle(gpu *machine.GPU) (again bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.believed == nil {
		v.believed, v.seen = map[string]partitioning{}, map[string]partitioning{}
	}
	shows := partitioning{gpu.MIG.Enabled, gpu.MIG.Pending, gpu.MIG.Instances}
	believed, known := v.believed[gpu.UUID]
	seen, once := v.seen[gpu.UUID]
	delete(v.seen, gpu.UUID)
	if !known || reflect.DeepEqual(shows, believed) || once && reflect.DeepEqual(shows, seen) {
		v.believed[gpu.UUID] = shows
		return false
	}
	v.seen[gpu.UUID] = shows
	gpu.MIG.Enabled, gpu.MIG.Pending, gpu.MIG.Instances = believed.enabled, believed.pending, believed.instances
	return true
}

// asWhole gives a GPU that is in MIG mode for claims alone the values of the whole
// that it was: a driver may count a GPU in MIG mode otherwise.
func (v *views) asWhole(gpu *machine.GPU, inMIGMode bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.whole == nil {
		v.whole = map[string]machine.GPU{}
	}
	if !inMIGMode {
		v.whole[gpu.UUID] = *gpu
		return
	}
	if was, known := v.whole[gpu.UUID]; known && !gpu.MIG.Enabled {
		gpu.Memory, gpu.Multiprocessors, gpu.NVLinkDomain = was.Memory, was.Multiprocessors, was.NVLinkDomain
		gpu.LimitsCgroups = was.LimitsCgroups
	}
}
