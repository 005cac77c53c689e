package agent

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/machine"
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
			a.claims.NICsChanged()
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

// settleNICs has NICs set up as the administrator wants them, after each look.
func (a *Agent) settleNICs(ctx context.Context) {
	if a.config.NICs == nil || len(a.config.Network.VFs) == 0 && a.config.Network.Lossless == nil {
		return
	}
	looked, stop := a.observer.Subscribe()
	defer stop()
	settings := nicSettings{
		nics: a.config.NICs, want: a.config.Network, failed: a.events.nicNotSetUp,
		unclaimed: func(ctx context.Context, nic *machine.NIC, change func() error) error {
			return a.claims.WhileFree(ctx, nic.Name(), change)
		},
	}
	for {
		if settings.Settle(ctx, a.observer.Machine()) {
			a.observer.Look()
		}
		select {
		case <-ctx.Done():
			return
		case <-looked:
		}
	}
}
