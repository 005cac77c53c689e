package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

const (
	// lookInterval bounds the age of a health report: the kubelet takes one of
	// more than 30 s for unknown. Changes are noticed at once by events.
	lookInterval = 15 * time.Second
	// waitInterval is how often an absent driver is looked for. A kernel module
	// and a library that appear raise no event that a container can see.
	waitInterval = time.Second
)

// observer knows the machine as it was last seen.
type observer struct {
	describe func(ctx context.Context) (machine.Machine, error)
	// changed is called after each change, before anybody sees the new machine.
	changed func(before, now *machine.Machine)

	current atomic.Pointer[machine.Machine]
	trigger chan struct{}

	mu      sync.Mutex // guards what follows
	waiters map[chan struct{}]bool
	absent  error
}

func newObserver(describe func(ctx context.Context) (machine.Machine, error)) *observer {
	o := &observer{describe: describe, trigger: make(chan struct{}, 1), waiters: map[chan struct{}]bool{}}
	o.current.Store(&machine.Machine{})
	return o
}

// Machine returns what was last seen; an empty machine before the first look.
func (o *observer) Machine() *machine.Machine { return o.current.Load() }

// Look asks for a look at the hardware soon. It does not wait.
func (o *observer) Look() {
	select {
	case o.trigger <- struct{}{}:
	default: // one is due already
	}
}

// Subscribe returns a channel that gets a value after each look, and the function
// that ends that.
func (o *observer) Subscribe() (<-chan struct{}, func()) {
	looked := make(chan struct{}, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiters[looked] = true
	return looked, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.waiters, looked)
	}
}

// Absent returns why no driver can be used, or nil.
func (o *observer) Absent() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.absent
}

// run looks at the hardware, at once and then again and again until ctx ends.
func (o *observer) run(ctx context.Context) {
	for {
		wait := lookInterval
		if err := o.look(ctx); err != nil {
			wait = waitInterval
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-o.trigger:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// look describes the machine once.
func (o *observer) look(ctx context.Context) error {
	now, err := o.describe(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o.report(ctx, err)
	before := o.current.Load()
	switch {
	case err == nil:
		o.set(before, machine.Merge(*before, now))
	case errors.Is(err, failure.Absent):
		o.set(before, before.WithoutDriver(err.Error()))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for looked := range o.waiters {
		select {
		case looked <- struct{}{}:
		default:
		}
	}
	return err
}

func (o *observer) set(before *machine.Machine, now machine.Machine) {
	if now.Equal(before) {
		return
	}
	o.changed(before, &now)
	o.current.Store(&now)
}

// report logs that the driver went or came, once.
func (o *observer) report(ctx context.Context, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	logger := klog.FromContext(ctx)
	switch {
	case err != nil && o.absent == nil && errors.Is(err, failure.Absent):
		logger.Info("No usable NVIDIA driver yet; looking again until there is one", "reason", err.Error())
	case err != nil && o.absent == nil:
		logger.Error(err, "Cannot describe the hardware; trying again")
	case err == nil && o.absent != nil:
		logger.Info("The NVIDIA driver can be used now")
	}
	o.absent = err
}
