package agent

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// nicRetry is the pause after a watch of NICs that failed.
const nicRetry = 5 * time.Second

// watchNICs has the hardware looked at, and claims looked after, when something about
// a NIC changes: one that a Pod had comes back with the end of the Pod's network.
func (a *Agent) watchNICs(ctx context.Context) {
	if a.config.NICs == nil {
		return
	}
	said := ""
	for ctx.Err() == nil {
		err := a.config.NICs.WatchNICs(ctx, func() {
			a.observer.Look()
			a.upkeep.Ask()
		})
		if err != nil && err.Error() != said {
			said = err.Error()
			klog.FromContext(ctx).Error(err, "Cannot watch NICs; looking at them from time to time instead")
		}
		select {
		case <-ctx.Done():
		case <-time.After(nicRetry):
		}
	}
}
