package agent

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
)

// firstLookSaid is how often it is said that the first look at the hardware goes on.
const firstLookSaid = 5 * time.Second

// errFirstLook is why the agent is not ready until it has looked at the hardware.
var errFirstLook = errors.New("the hardware has not answered yet: the GPUs' driver, when it starts, may take a minute; " +
	"where this goes on, look for Xid errors and the NICs' drivers in the kernel's log")

// firstLook looks at the hardware, before anything is served: what is published without
// would be nothing. Whatever it finds, the agent goes on; an error is why it ends.
func (a *Agent) firstLook(ctx context.Context) error {
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		_ = a.observer.look(ctx) // which has said what is wrong
	}()
	say := time.NewTicker(firstLookSaid)
	defer say.Stop()
	for {
		select {
		case <-done:
			close(a.looked)
			return ctx.Err()
		case <-ctx.Done():
			return ctx.Err() // a driver that hangs knows of no context
		case <-say.C:
			klog.FromContext(ctx).Info("Still waiting for the hardware's first answer; nothing is served before", "for", time.Since(began).Round(time.Second), "why", errFirstLook.Error())
		}
	}
}
