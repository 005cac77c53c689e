package claim

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// joint are the claims that have a step together: the first makes it, and the last
// undoes it. The caller has the GPU's lock.
type joint struct {
	claims []journal.Claim
	steps  []plan.Step
	// unknown says that a record cannot be read, which may have the step, too.
	unknown bool
}

// more says whether another claim than the one that is released has the step, or may.
func (j joint) more() bool { return len(j.claims) > 1 || j.unknown }

// jointly finds the claims on record with a step that is the same for same.
func (m *Manager) jointly(ctx context.Context, same func(plan.Step) bool) (joint, error) {
	var found joint
	err := m.eachRecord(ctx, func(e *journal.Entry, steps []plan.Step, err error) {
		found.unknown = found.unknown || err != nil
		i := slices.IndexFunc(steps, same)
		if i >= 0 {
			found.claims, found.steps = append(found.claims, e.Claim), append(found.steps, steps[i])
		}
	})
	return found, err
}

// timeSlice sets how long a GPU works for one process.
type timeSlice struct{ *Manager }

func (m timeSlice) same(s plan.Step) func(plan.Step) bool {
	return func(other plan.Step) bool { return other.Kind == s.Kind && other.GPU == s.GPU }
}

func (m timeSlice) observe(ctx context.Context, s plan.Step, again bool) (plan.Step, error) {
	if again {
		return s, nil
	}
	others, err := m.jointly(ctx, m.same(s))
	if err != nil {
		return s, err
	}
	for i, other := range others.steps {
		if other.Interval != s.Interval {
			return s, &taken{by: others.claims[i], text: func(claim string) string {
				return fmt.Sprintf("sharing.timeSlicing.interval: %s, but %s has set %s, which is the whole GPU's: want the same, or delete the Pod to have it scheduled again",
					s.Interval, claim, other.Interval)
			}}
		}
		s.IntervalBefore = other.IntervalBefore
	}
	if len(others.steps) == 0 {
		s.IntervalBefore, err = m.Sharing.TimeSlice(ctx, s.GPU)
	}
	return s, err
}

func (m timeSlice) do(ctx context.Context, s plan.Step, _ attempt) (outcome, error) {
	return outcome{}, m.Sharing.SetTimeSlice(ctx, s.GPU, s.Interval)
}

func (m timeSlice) undo(ctx context.Context, s plan.Step, _ *outcome) error {
	users, err := m.jointly(ctx, m.same(s))
	if err != nil || users.more() {
		return err
	}
	now, err := m.Sharing.TimeSlice(ctx, s.GPU)
	if errors.Is(err, failure.Unsupported) {
		return nil // nobody looks after it any more
	}
	if err != nil || now != s.Interval || now == s.IntervalBefore {
		return unlessGone(err)
	}
	return unlessGone(m.Sharing.SetTimeSlice(ctx, s.GPU, s.IntervalBefore))
}

// mps has a control daemon run for whoever shares its devices.
type mps struct{ *Manager }

// observe refuses a GPU that has a control daemon over other GPUs, too, or over fewer:
// a GPU has but one, and the scheduler knows nothing of them.
func (m mps) observe(ctx context.Context, s plan.Step, again bool) (plan.Step, error) {
	if again {
		return s, nil
	}
	others, err := m.jointly(ctx, func(other plan.Step) bool {
		return other.Kind == s.Kind && !reflect.DeepEqual(other.Set, s.Set) &&
			slices.ContainsFunc(other.Set, func(member plan.Member) bool { return slices.Contains(s.Set, member) })
	})
	if err == nil && len(others.claims) > 0 {
		err = &taken{by: others.claims[0], text: func(claim string) string {
			return fmt.Sprintf("a GPU of this claim has an MPS control daemon over other GPUs than this claim's, for %s: it is free for this one when that has ended; or delete the Pod to have it scheduled again (docs/operations.md, shares of several GPUs)", claim)
		}}
	}
	return s, err
}

func (m mps) do(ctx context.Context, s plan.Step, a attempt) (outcome, error) {
	devices, err := m.members(ctx, s)
	if err != nil {
		return outcome{}, err
	}
	daemon, err := m.Sharing.StartMPS(ctx, devices)
	if err == nil && a.made != nil && !slices.Equal(a.made.Devices, devices) {
		// A partition was made again, and is another MIG device now.
		err = unlessGone(m.Sharing.StopMPS(ctx, a.made.Devices))
	}
	return outcome{Devices: devices, MPS: &daemon}, err
}

func (m mps) undo(ctx context.Context, s plan.Step, made *outcome) error {
	users, err := m.jointly(ctx, func(other plan.Step) bool { return other.Kind == s.Kind && reflect.DeepEqual(other.Set, s.Set) })
	if err != nil || users.more() {
		return err
	}
	return m.onDaemon(ctx, s, made, m.Sharing.StopMPS)
}

// namespace limits the clients of one claim's request.
type namespace struct{ *Manager }

func (m namespace) observe(_ context.Context, s plan.Step, _ bool) (plan.Step, error) {
	return s, nil
}

func (m namespace) do(ctx context.Context, s plan.Step, _ attempt) (outcome, error) {
	devices, err := m.members(ctx, s)
	if err != nil {
		return outcome{}, err
	}
	pipe, err := m.Sharing.MakeNamespace(ctx, devices, s.Namespace, hardware.MPSLimits{
		ThreadPercentage: s.Limits.Threads, Memory: s.Limits.Memory,
	})
	return outcome{Devices: devices, Pipe: pipe}, err
}

func (m namespace) undo(ctx context.Context, s plan.Step, made *outcome) error {
	return m.onDaemon(ctx, s, made, func(ctx context.Context, devices []string) error {
		return m.Sharing.RemoveNamespace(ctx, devices, s.Namespace)
	})
}

// onDaemon undoes something of a control daemon. Where nobody looks after them any more,
// or nobody answers and nobody has said that it was started, a claim need not wait.
func (m *Manager) onDaemon(ctx context.Context, s plan.Step, made *outcome, undo func(context.Context, []string) error) error {
	daemons, err := m.daemons(ctx, s, made)
	for _, devices := range daemons {
		err = errors.Join(err, unlessGone(undo(ctx, devices)))
	}
	if errors.Is(err, failure.Unsupported) || made == nil && errors.Is(err, failure.Unreachable) {
		return &owed{}
	}
	return err
}

// daemons are the devices of a step's control daemon, as they are on record, and as they
// are now, where that is something else.
func (m *Manager) daemons(ctx context.Context, s plan.Step, made *outcome) (daemons [][]string, err error) {
	if made != nil && len(made.Devices) > 0 {
		daemons = append(daemons, made.Devices)
	}
	now, err := m.members(ctx, s)
	if err == nil && (len(daemons) == 0 || !slices.Equal(now, daemons[0])) {
		daemons = append(daemons, now)
	}
	return daemons, unlessGone(err)
}

// members are the UUIDs of a control daemon's devices.
func (m *Manager) members(ctx context.Context, s plan.Step) ([]string, error) {
	var uuids []string
	for _, member := range s.Set {
		uuid := member.GPU
		switch {
		case member.Static != "":
			uuid = member.Static
		case member.Partition != nil:
			there, err := m.find(ctx, plan.Step{GPU: member.GPU, Partition: member.Partition})
			if err != nil {
				return nil, err
			}
			if there == nil || len(there.ComputeInstances) == 0 {
				return nil, failure.New(failure.Absent, "partition %s does not exist", member.Partition.Device)
			}
			uuid = there.ComputeInstances[0].UUID
		}
		uuids = append(uuids, uuid)
	}
	return uuids, nil
}
