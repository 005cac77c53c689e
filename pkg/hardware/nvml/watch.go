package nvml

import (
	"context"
	"fmt"
	"time"

	api "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
)

const (
	// eventWait bounds how long Watch outlives its context: NVML's wait ends
	// with an event or with its time, and nothing else can wake it.
	eventWait = 500 * time.Millisecond
	// retryLost is how often a GPU is asked again that could not be watched. No
	// event says that it has come back.
	retryLost = 10 * time.Second
)

// Watch implements hardware.GPUs.
func (g *GPUs) Watch(ctx context.Context, notify func(hardware.Event)) error {
	for ctx.Err() == nil {
		if err := g.watch(ctx, notify); err != nil {
			return err
		}
	}
	return nil
}

// watch watches one set of GPUs. It returns nil when ctx ends or another set is
// due: after a GPU was lost, since the set then reports nothing else any more,
// and now and then while one is missing.
func (g *GPUs) watch(ctx context.Context, notify func(hardware.Event)) error {
	s, err := g.acquire()
	if err != nil {
		return err
	}
	defer g.release(s)
	set, ret := s.EventSetCreate()
	if ret != api.SUCCESS {
		return g.watchProblem(s, "nvmlEventSetCreate", ret)
	}
	defer set.Free() //nolint:errcheck // what it answers changes nothing
	watched, missing, err := g.register(s, set)
	if err != nil {
		return err
	}
	if len(watched) == 0 && !missing {
		return failure.New(failure.Unsupported, "no GPU of this node reports events: its health is only seen when it is described")
	}
	if len(watched) == 0 {
		pause(ctx, retryLost)
		return nil
	}
	for began := time.Now(); ctx.Err() == nil && !(missing && time.Since(began) > retryLost); {
		event, ret := set.Wait(uint32(eventWait.Milliseconds()))
		switch ret {
		case api.SUCCESS:
			g.report(watched[event.Device], event, notify)
		case api.ERROR_TIMEOUT:
		case api.ERROR_GPU_IS_LOST, api.ERROR_RESET_REQUIRED:
			notify(hardware.Event{}) // which one, Describe finds out
			pause(ctx, eventWait)    // should the next set answer the same at once
			return nil
		default:
			return g.watchProblem(s, "nvmlEventSetWait", ret)
		}
	}
	return nil
}

// register adds every GPU that can be watched to the set, and returns their
// UUIDs. A GPU without events is left out; missing says that one is left out
// which may come back.
func (g *GPUs) register(s *session, set api.EventSet) (watched map[api.Device]string, missing bool, err error) {
	count, ret := s.DeviceGetCount()
	if ret != api.SUCCESS {
		return nil, false, g.watchProblem(s, "nvmlDeviceGetCount", ret)
	}
	watched = map[api.Device]string{}
	for i := range count {
		switch uuid, device, ret := registerOne(s, set, i); ret {
		case api.SUCCESS:
			watched[device] = uuid
		case api.ERROR_NOT_SUPPORTED:
		case api.ERROR_DRIVER_NOT_LOADED, api.ERROR_UNINITIALIZED:
			return nil, false, g.gone(s, ret)
		default:
			missing = true
		}
	}
	return watched, missing, nil
}

func registerOne(s *session, set api.EventSet, index int) (uuid string, device api.Device, ret api.Return) {
	if device, ret = s.DeviceGetHandleByIndex(index); ret != api.SUCCESS {
		return "", nil, ret
	}
	if uuid, ret = device.GetUUID(); ret != api.SUCCESS {
		return "", nil, ret
	}
	types, ret := device.GetSupportedEventTypes()
	if ret != api.SUCCESS {
		return "", nil, ret
	}
	if types &= api.EventTypeXidCriticalError | api.EventTypeGpuRecoveryAction; types == 0 {
		return "", nil, api.ERROR_NOT_SUPPORTED
	}
	return uuid, device, device.RegisterEvents(types, set)
}

// report remembers a critical Xid, and passes the event on.
func (g *GPUs) report(uuid string, data api.EventData, notify func(hardware.Event)) {
	event := hardware.Event{UUID: uuid}
	if data.EventType == api.EventTypeXidCriticalError {
		event.Xid = data.EventData
	}
	if event.Critical() && uuid != "" {
		g.mutex.Lock()
		g.xids[uuid] = event.Xid
		g.mutex.Unlock()
	}
	notify(event)
}

func (g *GPUs) watchProblem(s *session, call string, ret api.Return) error {
	if err := g.gone(s, ret); err != nil {
		return err
	}
	return fmt.Errorf("watching GPU events: %s", explain(call, ret))
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
