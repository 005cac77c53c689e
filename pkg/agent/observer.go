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
	// lookPause is the least between two looks, however many events come.
	lookPause = time.Second
	// failedLooks in a row mean that nothing is known any more.
	failedLooks = 3
)

// observer knows the machine as it was last seen.
type observer struct {
	describe func(ctx context.Context) (machine.Machine, error)
	// changed is called after each change, before anybody sees the new machine.
	changed func(before, now *machine.Machine)
	// recall fills in what is known of devices that cannot be seen now, and says whether
	// something is withheld because of a claim. May be nil.
	recall func(*machine.Machine) (withheld bool)

	current  atomic.Pointer[machine.Machine]
	withheld atomic.Bool
	trigger  chan struct{}

	mu       sync.Mutex // guards what follows
	waiters  map[chan struct{}]bool
	absent   error
	failures int
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

// Released has what was withheld because of a claim looked at again, now that one has ended.
func (o *observer) Released() {
	if o.withheld.Load() {
		o.Look()
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

// run looks at the hardware again and again until ctx ends.
func (o *observer) run(ctx context.Context) {
	for {
		wait := lookInterval
		if err := o.look(ctx); err != nil {
			wait = waitInterval
		}
		pause, due := time.After(lookPause), time.After(wait)
		select {
		case <-ctx.Done():
			return
		case <-due:
		case <-o.trigger:
			select {
			case <-ctx.Done():
				return
			case <-pause:
			}
		}
	}
}

// withoutDriver says whether an error means that no GPU can be used.
func withoutDriver(err error) bool {
	return errors.Is(err, failure.Absent) || errors.Is(err, failure.Unreachable)
}

// look describes the machine once. Who waits for looks hears of those that told
// something.
func (o *observer) look(ctx context.Context) error {
	now, err := o.describe(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	before := o.current.Load()
	switch failures := o.report(ctx, err); {
	case err == nil:
		now = machine.Merge(*before, now)
	case withoutDriver(err), failures >= failedLooks, before.BootID == "" && now.BootID != "": // of NICs it may be known
		now = machine.WithoutDriver(*before, now, err.Error())
	default:
		return err
	}
	if o.recall != nil {
		o.withheld.Store(o.recall(&now))
	}
	o.set(before, now)
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

// report logs that the driver went, why, or that it came, once each, and counts
// failures in a row.
func (o *observer) report(ctx context.Context, err error) (failures int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	logger := klog.FromContext(ctx)
	if err == nil {
		if o.absent != nil {
			logger.Info("The NVIDIA driver can be used now")
		}
		o.absent, o.failures = nil, 0
		return 0
	}
	if o.absent == nil || o.absent.Error() != err.Error() {
		if withoutDriver(err) {
			logger.Info("No usable NVIDIA driver; looking again until there is one", "reason", err.Error())
		} else {
			logger.Error(err, "Cannot describe the hardware; trying again")
		}
	}
	o.absent = err
	o.failures++
	return o.failures
}
