package simulator

import (
	"context"
	"errors"
	"time"
)

// Linger waits as long as a call takes longer than usual, which delay reads from the
// machine's state (Trouble.Delays): what is asked for meanwhile counts, so that a call ends
// when its delay is lifted. When ctx ends Linger does too, with its error.
func (m *Machine) Linger(ctx context.Context, delay func(*State) time.Duration) error {
	state, err := m.State()
	if err != nil {
		return err
	}
	if delay(state) == 0 {
		return ctx.Err()
	}
	began := time.Now()
	events, err := m.Events()
	if err != nil {
		return err
	}
	defer events.Close()
	for ctx.Err() == nil {
		if state, err = m.State(); err != nil {
			return err
		}
		left := delay(state) - time.Since(began)
		if left <= 0 {
			break
		}
		step, end := context.WithTimeout(ctx, left)
		_, err := events.Next(step, func(Event) bool { return false })
		end()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return ctx.Err()
}

// DelayOf reads from a state how much longer that call takes on this GPU, for Linger.
func (g GPU) DelayOf(call string) func(*State) time.Duration {
	return func(s *State) time.Duration { return s.GPU(g.Index).Delay(call) }
}

// DelayOf is GPU.DelayOf for a NIC.
func (n NIC) DelayOf(call string) func(*State) time.Duration {
	return func(s *State) time.Duration { return s.NIC(n.Index).Delay(call) }
}
