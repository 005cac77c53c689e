package simulator

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

// NICs is the face within the process: hardware.NICs without a kernel. Network
// namespaces are nothing but names, of which the empty one is the host's.
type NICs struct{ machine *Machine }

var _ hardware.NICs = (*NICs)(nil)

// NICs shows the machine to the driver.
func (m *Machine) NICs() *NICs { return &NICs{machine: m} }

// DescribeNICs implements hardware.NICs.
func (c *NICs) DescribeNICs(ctx context.Context, only ...machine.Address) (hardware.NICDescription, error) {
	state, err := c.machine.State()
	if err != nil {
		return hardware.NICDescription{}, err
	}
	d := hardware.NICDescription{RDMAExclusive: state.Network.RDMAExclusive}
	var asked []int // at the same time
	for i := range state.NICs {
		n := state.NIC(i)
		if n.Unplugged || len(only) > 0 && !slices.Contains(only, n.Spec.Address) {
			continue
		}
		asked = append(asked, i)
		if _, fails := n.Failures[CallDescribeNIC]; fails {
			if err := c.call(n.Spec.Address, CallDescribeNIC, func(*State, Function) error { return nil }); err != nil {
				d.Faults = append(d.Faults, machine.Fault{Device: n.Spec.Address.String(), Kind: machine.FaultUnreadable, Message: err.Error()})
				continue
			}
		}
		if n.Spec.RDMA != "" {
			d.RDMANodes = []string{RDMANode}
		}
		d.NICs = append(d.NICs, n.Describe())
	}
	return d, c.machine.Linger(ctx, func(s *State) (most time.Duration) {
		for _, i := range asked {
			most = max(most, s.NIC(i).Delay(CallDescribeNIC))
		}
		return most
	})
}

// RDMANode is the character device that all RDMA devices have together.
const RDMANode = "/dev/infiniband/rdma_cm"

// call is a call about a function, as bad as was asked for.
func (c *NICs) call(function machine.Address, call string, do func(*State, Function) error) error {
	state, err := c.machine.State()
	if err != nil {
		return err
	}
	f, err := state.function(function)
	if err != nil {
		return err
	}
	return c.machine.callNIC(f.NIC.Spec.Address.String(), call, func(s *State, _ NIC) error {
		f, err := s.function(function)
		if err != nil {
			return err
		}
		return do(s, f)
	})
}

// wait is how long a call about a function takes.
func (c *NICs) wait(ctx context.Context, function machine.Address, call string) error {
	state, err := c.machine.State()
	if err != nil {
		return err
	}
	f, err := state.function(function)
	if err != nil {
		return failure.New(failure.Absent, "%s: %w", call, err)
	}
	return c.machine.Linger(ctx, f.NIC.DelayOf(call))
}

// WatchNICs implements hardware.NICs.
func (c *NICs) WatchNICs(ctx context.Context, notify func()) error {
	events, err := c.machine.Events()
	if err != nil {
		return fmt.Errorf("watching NICs: %w", err)
	}
	defer events.Close()
	before, err := c.machine.State()
	if err != nil {
		return fmt.Errorf("watching NICs: %w", err)
	}
	for {
		_, err := events.Next(ctx, func(Event) bool { return false })
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("watching NICs: %w", err)
		}
		now, err := c.machine.State()
		if err != nil {
			return fmt.Errorf("watching NICs: %w", err)
		}
		if !sameNetwork(before, now) {
			notify()
		}
		before = now
	}
}

// sameNetwork says whether nothing has become of the NICs; what is yet to go wrong
// does not count.
func sameNetwork(a, b *State) bool {
	if len(a.NICs) != len(b.NICs) || !reflect.DeepEqual(a.Network, b.Network) {
		return false
	}
	for i := range a.NICs {
		x, y := a.NICs[i], b.NICs[i]
		x.Trouble, y.Trouble = Trouble{}, Trouble{}
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}
