package claim

import (
	"context"
	"errors"
	"fmt"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// seen is the machine as it was last seen, with a claim's NICs as they are now: one that
// has just come back from a Pod may not be what the last look saw of it, and is on record
// for as long as the claim has it.
func (m *Manager) seen(ctx context.Context, results []plan.Result) (*machine.Machine, error) {
	now := m.Machine()
	var nics []machine.Address
	for _, r := range results {
		if d, known := now.Device(r.Device); known && d.NIC != nil {
			nics = append(nics, d.NIC.Address)
		}
	}
	if len(nics) == 0 {
		return now, nil
	}
	read, err := m.NICs.DescribeNICs(ctx, nics...)
	if err != nil {
		return nil, err
	}
	return now.Reread(read.NICs), nil
}

// nic reserves a NIC, or a VF: what it is on the host is on record before any container
// can take it into a Pod.
type nic struct{ *Manager }

func (m nic) observe(ctx context.Context, s plan.Step, again bool) (plan.Step, error) {
	if again {
		return s, nil // now it may be in the Pod
	}
	home, err := m.NICs.NICHome(ctx, s.Reserved.Function)
	if err != nil {
		return s, fmt.Errorf("request %s: %s: %w", s.Request, s.Device, elsewhere(err))
	}
	s.Home = &home
	return s, nil
}

// elsewhere says what to do where a NIC is not at home.
func elsewhere(err error) error {
	switch {
	case errors.Is(err, failure.Conflict):
		return fmt.Errorf("%w: have whoever took it give it back, or delete the Pod to have it scheduled again", err)
	case errors.Is(err, failure.Absent):
		return fmt.Errorf("%w: it was there when it was allocated: delete the Pod to have it scheduled again", err)
	}
	return err
}

// do leaves the rest to the containers' hook.
func (m nic) do(context.Context, plan.Step, attempt) (outcome, error) { return outcome{}, nil }

// undo brings the NIC home, from the Pod's namespace or from where the kernel has put
// it when that ended. While it is on its way, and while another interface has its name,
// the claim is not released.
func (m nic) undo(ctx context.Context, s plan.Step, _ *outcome) error {
	if s.Home == nil {
		return nil // nobody could have taken it anywhere
	}
	err := unlessGone(m.NICs.BringHome(ctx, *s.Home))
	if errors.Is(err, failure.Conflict) {
		err = failure.New(failure.Busy, "%w", err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Device, err)
	}
	return nil
}

// atHand makes sure that a prepared device's NIC is there, and that containers can use
// what they are given of it. A NIC that was reserved may be in the Pod by now.
func (m *Manager) atHand(ctx context.Context, d plan.Device, again bool) error {
	if d.NIC.Reserved && !again {
		return nil // to be observed
	}
	home, err := m.NICs.NICHome(ctx, d.NIC.Function)
	switch {
	case again && errors.Is(err, failure.Conflict):
		return nil
	case err != nil:
		return elsewhere(err)
	case home.RDMAMoves && !d.NIC.Reserved:
		return failure.New(failure.Unsupported,
			"RDMA device %s belongs to one network namespace, so that a container cannot use it where it stays with the host: run `rdma system set netns shared` on the node, or claim nic.dovetail.dev without keepHostNetwork", home.RDMA)
	}
	return nil
}

// NICsChanged has releases that wait for a NIC try again at once. It does not wait.
func (m *Manager) NICsChanged() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.nudged)
	m.nudged = make(chan struct{})
}

// nudge is closed with the next call of NICsChanged.
func (m *Manager) nudge() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nudged
}

// Recall fills in what claims had of NICs when Unclaimed looked last: how those were that
// are reserved, and that those stay NICs that claims have as such. withheld says that VFs
// are left out for that.
func (m *Manager) Recall(now *machine.Machine) (withheld bool) {
	reserved, held := m.views.ofClaims()
	now.Recall(reserved)
	return now.WithholdVFs(held)
}
