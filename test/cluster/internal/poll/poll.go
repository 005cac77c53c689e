// Package poll waits for what cannot be subscribed to.
package poll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Until tries every so often until it succeeds, says Stop, or the context ends.
// It tries at least once.
func Until(ctx context.Context, every time.Duration, try func() error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		if s := (*stop)(nil); errors.As(err, &s) {
			return s.why
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		case <-ticker.C:
		}
	}
}

// For is Until with nothing but a time limit.
func For(limit, every time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return Until(ctx, every, try)
}

// Stop wraps an error after which trying again is of no use.
func Stop(why error) error { return &stop{why} }

type stop struct{ why error }

func (s *stop) Error() string { return s.why.Error() }
func (s *stop) Unwrap() error { return s.why }
