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
	watched, missing, hung, err := g.register(s, set)
	if !hung { // else a call that may still return has it
		defer set.Free() //nolint:errcheck // what it answers changes nothing
	}
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
func (g *GPUs) register(s *session, set api.EventSet) (watched map[api.Device]string, missing, hung bool, err error) {
	count, ret := s.DeviceGetCount()
	if ret != api.SUCCESS {
		return nil, false, false, g.watchProblem(s, "nvmlDeviceGetCount", ret)
	}
	watched = map[api.Device]string{}
	for i := range count {
		answered := make(chan registration, 1)
		begun, err := g.inTime(s, fmt.Sprintf("the event source of index %d in session %p", i, s), func() { answered <- registerOne(s, set, i) })
		if err != nil {
			missing, hung = true, hung || begun
			continue
		}
		r := <-answered
		switch r.ret {
		case api.SUCCESS:
			watched[r.device] = r.uuid
		case api.ERROR_NOT_SUPPORTED:
		case api.ERROR_DRIVER_NOT_LOADED, api.ERROR_UNINITIALIZED:
			return nil, false, hung, g.gone(s, r.ret)
		default:
			missing = true
		}
	}
	return watched, missing, hung, nil
}

// registration is one GPU's, in an event set.
type registration struct {
	uuid   string
	device api.Device
	ret    api.Return
}

func registerOne(s *session, set api.EventSet, index int) (r registration) {
	if r.device, r.ret = s.DeviceGetHandleByIndex(index); r.ret != api.SUCCESS {
		return r
	}
	if r.uuid, r.ret = r.device.GetUUID(); r.ret != api.SUCCESS {
		return r
	}
	var types uint64
	if types, r.ret = r.device.GetSupportedEventTypes(); r.ret != api.SUCCESS {
		return r
	}
	if types &= api.EventTypeXidCriticalError | api.EventTypeGpuRecoveryAction | api.EventMigConfigChange; types == 0 {
		r.ret = api.ERROR_NOT_SUPPORTED
		return r
	}
	r.ret = r.device.RegisterEvents(types, set)
	return r
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
