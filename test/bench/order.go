package main

import (
	"context"
	"sync"
	"time"

	"github.com/dovetail-dra/dovetail/test/bench/kubelet"
)

// order is in what order a call is made for some claims. It returns how long they took,
// from the first to the last.
type order func(ctx context.Context, do func(context.Context, *kubelet.Claim) error, claims []*kubelet.Claim) (time.Duration, error)

// inTurn makes one call after the other.
func inTurn(ctx context.Context, do func(context.Context, *kubelet.Claim) error, claims []*kubelet.Claim) (time.Duration, error) {
	begin := time.Now()
	for _, c := range claims {
		if err := do(ctx, c); err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}

// atOnce makes all calls at once.
func atOnce(ctx context.Context, do func(context.Context, *kubelet.Claim) error, claims []*kubelet.Claim) (time.Duration, error) {
	begin := time.Now()
	_, err := together(ctx, do, claims)
	return time.Since(begin), err
}

// oneLock makes all calls at once, each of which waits for a lock that they share.
func oneLock(ctx context.Context, do func(context.Context, *kubelet.Claim) error, claims []*kubelet.Claim) (time.Duration, error) {
	var node sync.Mutex
	return atOnce(ctx, func(ctx context.Context, c *kubelet.Claim) error {
		node.Lock()
		defer node.Unlock()
		return do(ctx, c)
	}, claims)
}
