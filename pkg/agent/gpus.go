package agent

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// watchEvents has the hardware looked at when it reports something. Errors of
// applications, which come in crowds, are only counted.
func (a *Agent) watchEvents(ctx context.Context) {
	looked, stop := a.observer.Subscribe()
	defer stop()
	logger := klog.FromContext(ctx)
	said := ""
	for ctx.Err() == nil {
		err := a.config.GPUs.Watch(ctx, func(e hardware.Event) {
			if gpu, ok := a.observer.Machine().GPU(e.UUID); ok && e.Xid != 0 {
				a.config.Metrics.Xid(gpu.Name())
			}
			if e.Xid != 0 && !e.Critical() {
				logger.V(1).Info("A GPU reported an application's error", "gpu", e.UUID, "xid", e.Xid)
				return
			}
			logger.Info("A GPU reported an event", "gpu", e.UUID, "xid", e.Xid)
			a.observer.Look()
		})
		if withoutDriver(err) && a.observer.Absent() == nil {
			a.observer.Look() // it has just gone
		}
		if err != nil && !withoutDriver(err) && err.Error() != said {
			said = err.Error()
			logger.Error(err, "Cannot watch GPU events; looking at the hardware from time to time instead")
		}
		select { // the next look tells whether there is something to watch again
		case <-ctx.Done():
		case <-looked:
		}
	}
}
