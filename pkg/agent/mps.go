package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

// mpsRetry is the pause after a watch of control daemons that failed.
const mpsRetry = 5 * time.Second

// watchMPS tells people what becomes of control daemons, and has the claims with shares
// looked after.
func (a *Agent) watchMPS(ctx context.Context) {
	logger := klog.FromContext(ctx)
	said := ""
	for ctx.Err() == nil {
		err := a.config.MPS.WatchMPS(ctx, func(e hardware.MPSEvent) {
			logger.Info("An MPS control daemon is not as before", "devices", e.Devices, "kind", e.Kind, "message", e.Message)
			a.events.mps(e, a.namesOf(e.Devices))
			a.upkeep.Ask()
		})
		if err != nil && err.Error() != said {
			said = err.Error()
			logger.Info("Shares of GPUs by MPS and time slices cannot be prepared; looking again", "reason", said)
		}
		select {
		case <-ctx.Done():
		case <-time.After(mpsRetry):
		}
	}
}

// namesOf are the names of GPUs, by their UUIDs; MIG devices keep theirs.
func (a *Agent) namesOf(uuids []string) []string {
	names := slices.Clone(uuids)
	for i, uuid := range uuids {
		if gpu, ok := a.observer.Machine().GPU(uuid); ok {
			names[i] = gpu.Name()
		}
	}
	return names
}

// mps reports what became of a control daemon.
func (e *nodeEvents) mps(event hardware.MPSEvent, devices []string) {
	about := &corev1.ObjectReference{Kind: "Device", Name: strings.Join(devices, ","), FieldPath: string(event.Kind)}
	reasons := map[hardware.MPSEventKind]string{
		hardware.MPSRestarted: "MPSRestarted", hardware.MPSFaulted: "MPSFaulted", hardware.MPSFailed: "MPSFailed",
	}
	e.record(about, corev1.EventTypeWarning, reasons[event.Kind], "Share", strings.Join(devices, ", ")+": "+event.Message)
}
